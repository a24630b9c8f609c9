"""Chooses the features of a model and their kinds, by names and types.

In doubt a feature is left out, with the reason: a model without a feature is a little
worse, a model that learned an identifier is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

import numpy as np

from pipeline.config.features import ISO_TIME
from pipeline.scaffold.sample import MAX_DOMAIN, Column, Sample
from schemas.data_statistics import not_finite

# The CNN's dense layer grows with the image: at 96 x 96 it has 5 million weights, at
# 192 x 192 it would have 19 million.
MAX_SIDE = 96
# The CNN halves an image twice.
MIN_SIDE = 4
# Images of many sizes are resized to multiples of this.
_GRID = 8
# With four buckets or more per value, at most about a fifth of the values share one.
_BUCKETS_PER_VALUE = 4
_MIN_BUCKETS, _MAX_BUCKETS = 256, 65_536
_UNIQUE_FRACTION = 0.9
_MIN_RECORDS_OF_IDENTIFIER = 20
# Whole numbers with at most so many values are classes.
FEW = 20
_MAX_CATEGORIES = 1000
# Texts have more words on average than the values of a category.
_MIN_WORDS = 3
_MAX_LENGTH = 256
# So many values show what is in bytes.
_TEXTS = 1000
# The largest of numbers whose logarithm is taken, as a multiple of their median.
_LONG_TAIL = 100
# 1980 and 2100: whole numbers between them may be seconds since 1970.
_EARLIEST_TIME, _LATEST_TIME = 315_532_800, 4_102_444_800
_ISO_TIME = re.compile(ISO_TIME.encode())
_DATE_FRACTION = 0.95
# How many different values of a part, by its code of strftime, must have been seen for
# it to be used: a model knows nothing of a month that is not in its training data.
_LEAST_PARTS = {"hour": ("%H", 2), "weekday": ("%w", 2), "month": ("%m", 12)}

_CODE_WORDS = frozenset(
    "id ids code area tract zip zipcode postcode postal type category class kind group "
    "zone region district month day weekday hour country state city store shop item "
    "product segment channel brand model sku cluster level grade status".split()
)
_SIZE_WORDS = (
    frozenset("height rows h".split()),
    frozenset("width cols columns w".split()),
    frozenset("channels channel depth".split()),
)
# Lists of these are of categories, even if all have the same length.
_LIST_WORDS = frozenset(
    "ids codes categories genres tags labels types classes kinds groups".split()
)
_ID_WORDS = frozenset("id ids uuid guid key hash filename path url uri".split())
# Each may have several records, which resemble each other.
_ENTITY_WORDS = frozenset(
    "patient subject person participant user customer client member account employee "
    "student visitor guest player driver speaker household session device".split()
)
_TIME_WORDS = frozenset("time timestamp ts date datetime at epoch created".split())
GROUP = "group"  # How the id of such an entity is seen.
_SENSITIVE = re.compile(
    r"(^|_)(e_?mail|phone|mobile|ssn|passport|iban|dob|birth_?(date|day)|address|"
    r"street|surname|(first|last|full|family|given)_?name|credit_?card_?n\w*)(_|$)"
)


def words(name: str) -> list[str]:
    """Returns the words of a feature's name: ``image/classLabel`` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


@dataclass(frozen=True)
class FeatureChoice:
    """How a feature is used, and why.

    Attributes:
      name: of the feature.
      seen_as: what it is taken for.
      why: the reason, a clause without a full stop.
      spec: the config's entry, such as ``{"kind": "numeric"}``; None: it is left out.
    """

    name: str
    seen_as: str
    why: str
    spec: Mapping[str, Any] | None = None


def choose_features(sample: Sample, label: str) -> list[FeatureChoice]:
    """Returns a choice for every feature but the label, in their order."""
    choices = [
        _choose(column, sample.columns)
        for name, column in sample.columns.items()
        if name != label
    ]
    images = [choice for choice in choices if choice.seen_as in ("image", "pixels")]
    if len(images) != 1:
        return choices
    why = "the CNN uses only the image"
    return [
        choice
        if choice in images or not choice.spec
        else replace(choice, spec=None, why=why)
        for choice in choices
    ]


def _choose(column: Column, columns: Mapping[str, Column]) -> FeatureChoice:
    choice = partial(FeatureChoice, column.name)
    named = set(words(column.name))
    # A flag such as is_mobile does not identify a person.
    is_personal = _SENSITIVE.search("_".join(words(column.name)))
    if is_personal and not set(column.counts) <= {0, 1}:
        return choice("sensitive", "its name suggests personal data")
    if not column.present or not column.lengths[1]:
        return choice("empty", "no record has a value")
    if is_not_finite(column):
        why = "some of its values are NaN or infinite, which would count as missing"
        return choice("not_finite", why)
    if pixels := _choose_pixels(column, columns):
        return pixels
    if not column.is_single:
        return _choose_list(column)
    if column.images:
        return _choose_image(column)
    counts = column.counts
    values = f"{len(counts):,} values"
    is_id = named & _ENTITY_WORDS and named & _ID_WORDS and column.type != "FLOAT"
    if is_id and len(counts) > MAX_DOMAIN and not _is_unique(column):
        why = f"{values}; a model would learn whose records these are"
        return choice(GROUP, why)
    if len(counts) == 1:
        return choice("constant", "it has one value in all records that have it")
    if times := _times(column):
        return _time(column, times)
    if column.type == "BYTES":
        if not column.is_text:
            return choice("binary", "bytes that are neither text nor a known image")
        lengths = [len(text.split()) for text in column.values[:_TEXTS].to_pylist()]
        is_text = sum(lengths) >= _MIN_WORDS * len(lengths)
        if is_text and len(counts) > column.present / 2:
            why = f"{sum(lengths) / len(lengths):.0f} words on average"
            return choice("text", why, _text_spec(max(lengths)))
        if _is_unique(column):
            return choice("identifier", f"{values}, nearly one per record")
        return _categorical(column)
    low, high = column.bounds
    if column.type == "FLOAT":
        return _number(column, f"{low:.6g} to {high:.6g}, {values}")
    if named & _TIME_WORDS and low >= _EARLIEST_TIME:
        return choice("timestamp", "not in seconds since 1970, as 'kind: time' needs")
    if is_identifier(column) or (_is_unique(column) and named & _ID_WORDS):
        return choice("identifier", f"{values}, nearly one per record")
    # A float32 does not tell large numbers that are close together apart.
    is_merged = len({*map(np.float32, counts)}) < len(counts)
    is_few = len(counts) <= FEW and (is_merged or _is_dense(column, 0.5))
    if named & _CODE_WORDS or is_few:
        return _categorical(column)
    return _number(column, f"{low:,} to {high:,}, {values}")


def _number(column: Column, why: str) -> FeatureChoice:
    spec: dict[str, Any] = {"kind": "numeric"}
    low, high = column.bounds
    if low >= 0 and high > _LONG_TAIL * column.stats.num_stats.median > 0:
        why += ", a few of them far larger than the others"
        spec["log"] = True
    if not column.is_required:
        why += f", missing in {column.records - column.present:,} records"
        spec["missing_indicator"] = True
    return FeatureChoice(column.name, "number", why, spec)


def _times(column: Column) -> list[datetime]:
    """Returns the different times of a feature; none if it is not one of times."""
    low, high = column.bounds
    named = {*words(column.name)} & _TIME_WORDS
    if column.type == "INT" and named and _EARLIEST_TIME <= low <= high < _LATEST_TIME:
        return [datetime.fromtimestamp(x, timezone.utc) for x in column.counts]
    times = []
    for text in column.counts if column.type == "BYTES" else ():
        with suppress(ValueError):
            if _ISO_TIME.fullmatch(text):
                times.append(datetime.fromisoformat(text[:16].decode()))
    return times if len(times) >= _DATE_FRACTION * len(column.counts) else []


def _time(column: Column, times: list[datetime]) -> FeatureChoice:
    parts = [
        part
        for part, (code, least) in _LEAST_PARTS.items()
        if len({time.strftime(code) for time in times}) >= least
    ]
    why = f"{min(times).date()} to {max(times).date()}"
    why += "" if parts else ", always at the same hour and on the same weekday"
    why += "; add 'age' to 'parts' if it matters how long ago it is"
    spec = {"kind": "time", "parts": parts} if parts else None
    return FeatureChoice(column.name, "time", why, spec)


def _channels_text(channels: int) -> str:
    return "1 channel" if channels == 1 else f"{channels} channels"


def _text_spec(length: int) -> dict[str, Any]:
    return {"kind": "text", "length": min(max(2, length), _MAX_LENGTH)}


def _choose_pixels(
    column: Column, columns: Mapping[str, Column]
) -> FeatureChoice | None:
    """Returns the choice for raw pixels, whose height and width are features, too."""
    if column.present < column.records or column.images:
        return None
    counts = {column.lengths[1]} if column.lengths[0] == column.lengths[1] else set()
    if column.type == "BYTES":
        counts = {*map(len, column.values[:_TEXTS].to_pylist())}
    if len(counts) != 1 or not (column.type == "BYTES" or not column.is_single):
        return None
    (count,) = counts
    size = [_only_value(columns, names) for names in _SIZE_WORDS]
    height, width, channels = size[0], size[1], size[2] or 1
    pixels = (height or 0) * (width or 0) * channels
    is_float = column.type == "BYTES" and count == 4 * pixels
    if not pixels or count not in (pixels, 4 * is_float * pixels):
        return None
    spec = {"kind": "pixels", "height": height, "width": width, "channels": channels}
    spec |= {"dtype": "float32"} if is_float else {}
    why = f"{count:,} {'bytes' if column.type == 'BYTES' else 'numbers'}"
    why += f", {width} x {height} pixels, {_channels_text(channels)}"
    return FeatureChoice(column.name, "pixels", why, spec)


def _only_value(columns: Mapping[str, Column], names: frozenset[str]) -> int | None:
    """Returns the value of a feature of such a name, if all records have the same."""
    for column in columns.values():
        is_named = words(column.name)[-1:] and words(column.name)[-1] in names
        if is_named and column.type == "INT" and len(column.counts) == 1:
            return next(iter(column.counts))
    return None


def _choose_list(column: Column) -> FeatureChoice:
    """Returns the choice for a feature with several values in a record."""
    choice = partial(FeatureChoice, column.name)
    least, most = column.lengths
    is_fixed = least == most and column.present == column.records
    size = f"{most:,} values" if least == most else f"{least:,} to {most:,} values"
    if column.images or not column.is_text:
        return choice("binary", "several images or other bytes in a record")
    count, is_number = len(column.counts), column.type != "BYTES"
    named = set(words(column.name))
    if is_number and is_fixed and not named & _LIST_WORDS:
        low, high = column.bounds
        why = f"{size} in each record, {low:.6g} to {high:.6g}"
        return choice("vector", why, {"kind": "vector"})
    if column.type == "FLOAT":
        why = f"{size}, or none: a vector" if least == most else f"{size}: a vector"
        why += " needs as many in each record; or write your own preprocessing_fn"
        return choice("several_values", why)
    if count >= _UNIQUE_FRACTION * len(column.values) and count > FEW:
        return choice("identifier", f"{count:,} values, nearly all of them once")
    is_code = named & (_CODE_WORDS | _LIST_WORDS)
    if is_number and not (is_code or _is_dense(column, 0.5)):
        return choice("several_values", f"{size}, which do not look like categories")
    if count > _MAX_CATEGORIES:
        spec = {**_text_spec(most), "split": False}
        return choice("tokens", f"{count:,} different ones, {size}", spec)
    why = f"{count:,} categories, {size}"
    kept = {} if is_closed(column) else {"top_k": count}
    return choice("categories", why, {"kind": "multi_hot", **kept})


def is_not_finite(column: Column) -> bool:
    """Whether a number is NaN or infinite."""
    return any(not_finite(column.stats))


def is_closed(column: Column) -> bool:
    """Whether the values of a categorical feature are taken to be all that exist."""
    few = len(column.counts) <= MAX_DOMAIN
    return few and (column.type == "BYTES" or _is_dense(column, 0.9))


def _categorical(column: Column) -> FeatureChoice:
    choice = partial(FeatureChoice, column.name)
    count = len(column.counts)
    if is_closed(column):
        why = f"{count:,} values, assumed complete"
        return choice("categorical", why, {"kind": "vocabulary"})
    least = 1 << (_BUCKETS_PER_VALUE * count - 1).bit_length()
    buckets = min(max(_MIN_BUCKETS, least), _MAX_BUCKETS)
    why = f"{count:,} values, more may follow; {buckets:,} buckets"
    return choice("categorical", why, {"kind": "hashed", "buckets": buckets})


def _is_dense(column: Column, fraction: float) -> bool:
    """Whether whole numbers fill at least this fraction of their range."""
    low, high = column.bounds
    return len(column.counts) >= fraction * (high - low + 1)


def is_identifier(column: Column) -> bool:
    """Whether whole numbers count the records."""
    low, high = column.bounds
    return _is_unique(column) and high - low < 1.1 * column.present


def _is_unique(column: Column) -> bool:
    enough = column.present >= _MIN_RECORDS_OF_IDENTIFIER
    return enough and len(column.counts) >= _UNIQUE_FRACTION * column.present


def _choose_image(column: Column) -> FeatureChoice:
    choice = partial(FeatureChoice, column.name)
    formats = {image.format for image in column.images}
    named = ", ".join(sorted(formats)).upper()
    if "webp" in formats:
        return choice("binary", f"{named} images; TensorFlow does not decode WebP")
    if not column.is_required:
        return choice("binary", f"{named} images, but not in every record")
    is_gray = all(image.channels <= 2 for image in column.images)
    # TensorFlow decodes no BMP to one channel.
    channels = 1 if is_gray and "bmp" not in formats else 3
    # One size for all: the median of the short sides, in the median proportions.
    sides = np.array([image[1:3] for image in column.images.elements()])
    short, wide = np.median(sides.min(axis=1)), np.median(sides[:, 0] / sides[:, 1])
    wanted = np.array([max(wide, 1), max(1 / wide, 1)]) * short
    wanted *= min(1, MAX_SIDE / wanted.max())
    sizes = {*map(tuple, sides.tolist())}
    grid = 1 if len(sizes) == 1 else _GRID
    width, height = (max(MIN_SIDE, grid * round(x / grid)) for x in wanted.tolist())
    spec = {"kind": "image", "height": height, "width": width, "channels": channels}
    why = f"{named}, {sides[0, 0]} x {sides[0, 1]} pixels, {_channels_text(channels)}"
    if len(sizes) > 1:
        spec["resize"] = "fit"
        why = f"{named}, {len(sizes):,} sizes, the short sides {short:.0f} pixels in "
        why += f"the median, {_channels_text(channels)}"
    if sizes != {(width, height)}:
        why += f"; resized to {width} x {height}"
    return choice("image", why, spec)
