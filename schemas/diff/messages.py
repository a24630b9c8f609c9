"""Message texts of differences: counts, shares, values, bounds."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff.observed_data import ObservedFeature, SplitPresence
from sluice.errors import MAX_EXAMPLES
from sluice.printable import printable

NO_STRUCTS = "nested features are not read by Sluice"
_MAX_CHARACTERS = 60


def plural(count: int, noun: str) -> str:
    """Returns ``1 value`` or ``12 values``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def number(count: int, noun: str) -> str:
    """Returns ``1 value is`` or ``12 values are``."""
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"


def share(part: int, whole: int) -> str:
    """Returns a percentage, rounded to 0 or 100 only if it is exact."""
    tenths = 1000 * part // whole if whole else 0
    if part and not tenths:
        return "less than 0.1 %"
    return f"{tenths // 10}.{tenths % 10} %".replace(".0 %", " %")


def quoted(value: str) -> str:
    """Returns a value in quotes, control characters escaped, cut if it is long."""
    cut = value if len(value) <= _MAX_CHARACTERS else value[:_MAX_CHARACTERS] + "..."
    return printable(json.dumps(cut, ensure_ascii=False))


def bounds(low: float | None, high: float | None) -> str:
    """Returns ``0.0 .. 300.0``; an open end is left out."""
    left = "" if low is None else f"{_plain(low)} "
    return f"{left}.." + ("" if high is None else f" {_plain(high)}")


def types(seen: ObservedFeature) -> str:
    """Returns ``BYTES``, or ``INT in 9 records, FLOAT in 1``."""
    if len(seen.types) == 1:
        return next(iter(seen.types))
    return ", ".join(
        f"{name} in {plural(n, 'record')}" for name, n in seen.types.items()
    )


def new_values(new: Mapping[str, int], seen: ObservedFeature) -> str:
    """Returns the values that are not in the domain, most frequent first."""
    shown = [
        f"{quoted(value)} ({_occurrences(count, seen)})"
        for value, count in list(new.items())[:MAX_EXAMPLES]
    ]
    if len(new) > MAX_EXAMPLES:
        shown.append(f"and {len(new) - MAX_EXAMPLES:,} more")
    return f"new value{'s' if len(new) > 1 else ''} {', '.join(shown)}"


def count_of_new_values(new: Mapping[str, int], seen: ObservedFeature) -> str:
    """Returns their number, for a sensitive feature."""
    occurrences = _occurrences(sum(new.values()), seen)
    return f"{plural(len(new), 'new value')} ({occurrences})"


def values(seen: ObservedFeature) -> list[str]:
    """Returns a summary of the values of a feature that is not in the schema."""
    if seen.distinct is not None:
        least = "more than " if seen.at_least else ""
        return [least + plural(seen.distinct, "value")]
    if seen.low is not None:
        return [bounds(seen.low, seen.high)]
    return []


def missing(
    seen: ObservedFeature, worst: SplitPresence, presence: schema_pb2.FeaturePresence
) -> str:
    """Returns the observed and the required presence."""
    if not seen.present:
        return "in the schema, not in the data"
    where = f" of split {worst.split}" if len(seen.presence) > 1 else ""
    percent = share(worst.present, worst.records)
    text = f"present in {percent} of records{where}, the schema requires "
    if worst.fraction < presence.min_fraction:
        return text + _percent(presence.min_fraction)
    fewest = min(seen.presence, key=lambda item: item.present)
    where = f" of split {fewest.split}" if len(seen.presence) > 1 else ""
    records = plural(fewest.present, "record") + where
    return f"present in {records}, the schema requires {presence.min_count:,}"


def _occurrences(count: int, seen: ObservedFeature) -> str:
    if seen.max_values <= 1:
        return f"{plural(count, 'record')}, {share(count, seen.records)}"
    return f"{plural(count, 'value')}, {share(count, seen.values)}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.6g} %"


def _plain(value: float) -> str:
    """Returns a number with the precision of a 32-bit float, as in schemas and data.

    Otherwise a bound of 42.1 would be shown as 42.099998.
    """
    if isinstance(value, int):
        return str(value)
    wanted = ctypes.c_float(value).value
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        # Near the largest float fewer digits may exceed it; ctypes returns inf.
        if ctypes.c_float(float(text)).value == wanted:
            return repr(float(text))
    return repr(value)
