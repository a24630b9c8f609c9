"""Formats of numbers, times and text on the pages.

Numbers have few digits and thousands separators, sizes and durations their unit. Text
from data or config is made visible: it has no control characters, and none that change
the direction of what follows.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sluice.numbers import decimals_of as significant_decimals
from sluice.numbers import number_text

MISSING = "\N{EN DASH}"
_SIZES = ("B", "kB", "MB", "GB", "TB")
_LINE_BREAKS = "\n\t"
# Cf has the bidirectional overrides and zero-width characters, Co and Cs no glyphs.
_INVISIBLE = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def visible(value: object) -> str:
    """Returns a value as text in which invisible characters are escaped.

    Line breaks and tabs stay.
    """
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        f"\\u{ord(x):04x}"
        if x not in _LINE_BREAKS and unicodedata.category(x) in _INVISIBLE
        else x
        for x in text
    )


def log_text(text: str) -> str:
    """Returns lines of a log as text, without the colours of a terminal."""
    return visible(_COLORS.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def shorten(value: object, limit: int) -> str:
    """Returns text of at most ``limit`` characters, with an ellipsis if it was cut."""
    text = visible(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def number(value: Any, digits: int = 4) -> str:
    """Returns a number with ``digits`` significant digits, see ``number_text``.

    NaN and infinities, which are text in the record's documents, are shown as such.
    """
    if value is None:
        return MISSING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return visible(value)
    return number_text(value, digits)


def decimals_of(*values: float | None) -> int | None:
    """Returns how many decimals some numbers need to be compared.

    Those of four digits of the largest, without zeros that all of them have; more where
    the numbers would look the same. None if they cannot have the same decimals.
    """
    known = {value for value in values if value is not None}
    largest = max(map(abs, known), default=0.0)
    if not all(map(math.isfinite, known)) or not 1e-4 <= largest < 1e15:
        return None
    most = significant_decimals(largest, 4)
    while most < 15 and len({round(value, most) for value in known}) < len(known):
        most += 1
    rounded = [round(value, most) for value in known]
    return next(n for n in range(16) if all(round(x, n) == x for x in rounded))


def fixed(value: float | None, decimals: int | None) -> str:
    """Returns a number with so many decimals, see ``decimals_of``."""
    if value is None or decimals is None:
        return number(value)
    return f"{value:,.{decimals}f}"


def signed(value: Any, decimals: int | None = None) -> str:
    """Returns a change as ``fixed`` does, with its sign."""
    is_more = isinstance(value, int | float) and value > 0
    return f"{'+' if is_more else ''}{fixed(value, decimals if value else None)}"


def seconds(value: float | str | None, missing: str = MISSING) -> str:
    """Returns a duration: ``0.4 s``, ``2 min 05 s`` or ``3 h 07 min``.

    NaN and infinities, which are text in the record's documents, are shown as such.
    """
    if value is None:
        return missing
    if isinstance(value, str) or not math.isfinite(value):
        return number(value)
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02d} min"


def size(value: float | None) -> str:
    """Returns a number of bytes in a decimal unit: ``1.4 MB``."""
    if value is None:
        return MISSING
    unit = 0
    while value >= 999.5 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    digits = f"{value:,.0f}" if unit == 0 or value >= 999.5 else f"{value:.3g}"
    return f"{digits} {_SIZES[unit]}"


def percent(value: float | str | None) -> str:
    """Returns a fraction as a percentage with at most one decimal.

    NaN and infinities, which are text in the record's documents, are shown as such.
    """
    if value is None or isinstance(value, str):
        return MISSING if value is None else visible(value)
    if abs(value) > 1e6:
        return f"{100 * value:.1e} %"
    text = f"{100 * value:.1f}".removesuffix(".0")
    if text in ("0", "100") and 0 < value < 1:
        text = "<0.1" if text == "0" else ">99.9"
    return f"{text} %"


def limit_text(limit: str) -> str:
    """Returns a limit of the record with mathematical signs."""
    return limit.replace(">=", "≥").replace("<=", "≤")


def time(value: str | None) -> str:
    """Returns a time of the record as ``2026-11-22 18:32:39 UTC``."""
    if not value:
        return MISSING
    try:
        return datetime.fromisoformat(value).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        return visible(value)


def tags_text(tags: Mapping[str, str]) -> str:
    """Returns tags as they are typed: ``name=value``, or ``name`` alone."""
    return ", ".join(f"{name}={x}" if x else name for name, x in tags.items())


def span_text(span: Mapping[str, Any]) -> str:
    """Returns a span of a record as ``span 3 version 2 (2026-01-04)``."""
    text = f"span {span['span']}"
    text += f" version {span['version']}" if span["version"] is not None else ""
    return text + (f" ({span['date']})" if span["date"] else "")


def shape(sizes: Sequence[int | None] | None) -> str:
    """Returns a shape such as ``[?, 28, 28, 1]``; ``?`` alone if it is unknown."""
    if sizes is None:
        return "?"
    return f"[{', '.join('?' if size in (None, -1) else str(size) for size in sizes)}]"


def setting(value: Any) -> str:
    """Returns a value of a config, as it is written there."""
    return value if isinstance(value, str) else json.dumps(value)


def state(value: str) -> str:
    """Returns the state of a run or node in words: ``done`` of a node that ran."""
    return "done" if value == "ran" else value.replace("_", " ")


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: ``1 node``, ``1,200 examples``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def progress(facts: Mapping[str, Any]) -> list[str]:
    """Returns the parts of a node's progress report, such as ``epoch 3/30``."""
    if facts.get("event") not in ("epoch", "step"):
        return [str(facts["line"])] if facts.get("line") else []
    parts = [str(facts["trial"])] if "trial" in facts else []
    parts.append(f"epoch {facts['epoch']}/{facts['epochs']}")
    if facts["event"] == "step":
        parts.append(f"step {facts['step']}/{facts['steps']}")
    parts += [
        # NaN and infinities are text in a record.
        f"{name} {float(value):.4f}"
        for name, value in facts.get("metrics", {}).items()
        if name.startswith("val_")
    ]
    if "examples_per_second" in facts:
        parts.append(f"{facts['examples_per_second']:,.0f} examples/s")
    if facts.get("eta_s"):
        parts.append(f"at most {seconds(facts['eta_s'])} left")
    return parts
