"""Infers the semantic type of a feature from its counts and name, with a reason.

Heuristics, for a person to review. In doubt a feature is left out, with the reason: a
model without a feature is a little worse, a model that learned an identifier is wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from pipeline.scaffold.summarize import FeatureSummary, Kind
from sluice.tfrecords.image_header import ImageHeader

SemanticTypeName = Literal[
    "image",
    "number",
    "position",
    "categorical",
    "identifier",
    "timestamp",
    "text",
    "binary",
    "sensitive",
    "constant",
    "rare",
    "not_finite",
    "several_values",
    "mixed_types",
    "empty",
    # These two depend on other features: see choose_features.
    "leak",
    "group",
]
USED: frozenset[SemanticTypeName] = frozenset(
    {"image", "number", "position", "categorical"}
)

# A feature with at most so many different values always gets a domain.
FEW_VALUES = 20
# With more values, up to this number, only if nearly all were seen more than once.
MANY_VALUES = 200
_RARE_FRACTION = 0.01
_IMAGE_FRACTION = 0.95
_UNIQUE_FRACTION = 0.9
_MIN_RECORDS_OF_IDENTIFIER = 20
# Few whole numbers are counts if the highest quarter of their range has less than this.
_MIN_VALUES_OF_COUNT = 8
_COUNT_TAIL = 0.02
# Whole numbers so far from 0, compared with their spread, are codes.
_CODE_OFFSET = 100
_LARGE_CODE = 1_000_000
# 1980 to 2100: a number of seconds since 1970 in s, ms, us or ns.
_SECONDS = (315_532_800, 4_102_444_800)
_SECOND_UNITS = (1, 10**3, 10**6, 10**9)

_CODE_WORDS = frozenset(
    "id ids code area tract zip zipcode postcode postal type category class kind group "
    "zone region district month day weekday hour country state city store shop item "
    "product segment channel brand model sku cluster level grade status".split()
)
_QUANTITY_WORDS = frozenset(
    "count counts num number total sum amount seconds minutes hours days weeks months "
    "years age price cost fare miles km distance length width height size weight score "
    "rating rate duration quantity qty".split()
)
_ID_WORDS = frozenset("id ids uuid guid key hash filename path url uri".split())
_TIME_WORDS = frozenset("time timestamp ts date datetime at epoch created".split())
_SENSITIVE = re.compile(
    r"(^|_)(e_?mail|phone|mobile|ssn|passport|iban|dob|birth_?(date|day)|address|"
    r"street|surname|(first|last|full|family|given)_?name|credit_?card_?n\w*)(_|$)"
)


@dataclass(frozen=True)
class SemanticType:
    """A semantic type, with the reason: a clause without a full stop.

    It is closed if the observed values are taken to be all that exist.
    """

    name: SemanticTypeName
    why: str
    closed: bool = False

    @property
    def used(self) -> bool:
        """Whether a model can learn from it."""
        return self.name in USED


def semantic_type_of(feature: FeatureSummary) -> SemanticType:
    """Returns the semantic type of a feature."""
    if feature.kind is None:
        return SemanticType("empty", "no record has a value")
    for rule in (_sensitive, unusable, _image, _unfit, *_BY_KIND[feature.kind]):
        if semantic_type := rule(feature):
            return semantic_type
    return SemanticType("number", f"{_span(feature)}, {_distinct(feature)}")


def words(name: str) -> list[str]:
    """Returns the words of a feature's name: ``image/classLabel`` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def common_image(feature: FeatureSummary) -> ImageHeader:
    """Returns the most common header whose size could be read.

    Raises:
      ValueError: there is none.
    """
    whole = {image: n for image, n in feature.images.items() if image.width}
    return max(whole, key=whole.__getitem__)


def _sensitive(feature: FeatureSummary) -> SemanticType | None:
    # A flag such as is_mobile or has_phone does not identify a person.
    flag = feature.kind == "int" and set(feature.counts) <= {0, 1}
    if not flag and _SENSITIVE.search("_".join(words(feature.name))):
        return SemanticType("sensitive", "its name suggests personal data")
    return None


def unusable(feature: FeatureSummary) -> SemanticType | None:
    """Returns the type of a feature that no model can use, None for other features."""
    if len(feature.kinds) > 1:
        parts = (f"{kind} in {count:,}" for kind, count in feature.kinds.items())
        return SemanticType(
            "mixed_types", f"its type differs: {', '.join(parts)} records"
        )
    if not feature.single:
        low, high = feature.min_values, feature.max_values
        number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        return SemanticType(
            "several_values",
            f"{number} values in a record; only your own preprocessing_fn can use them",
        )
    return None


def _image(feature: FeatureSummary) -> SemanticType | None:
    images = sum(feature.images.values())
    if images < _IMAGE_FRACTION * feature.values or not images:
        return None
    formats: Counter[str] = Counter()
    for image, count in feature.images.items():
        formats[image.format] += count
    named = ", ".join(name.upper() for name, _ in formats.most_common())
    if "webp" in formats:
        return SemanticType(
            "binary", f"{named} images; TensorFlow does not decode WebP"
        )
    if not any(image.width for image in feature.images):
        return SemanticType("binary", f"{named} images with truncated headers")
    if not feature.always:
        return SemanticType("binary", f"{named} images, but only in {share(feature)}")
    most = common_image(feature)
    sizes = {image[1:3] for image in feature.images}
    size = f"{most.width} x {most.height} pixels"
    more = f"mostly {size}, {len(sizes):,} sizes" if len(sizes) > 1 else size
    return SemanticType("image", f"{named}, {more}, {_channels(feature)}")


def _unfit(feature: FeatureSummary) -> SemanticType | None:
    """Returns the type of a feature whose values are rare, constant or not finite."""
    if feature.fraction < _RARE_FRACTION:
        return SemanticType("rare", f"only in {share(feature)}")
    if feature.nans or feature.infinities:
        found = f"NaN in {feature.nans:,}, infinite in {feature.infinities:,} records"
        return SemanticType("not_finite", found)
    if feature.distinct == 1 and not feature.many:
        return SemanticType("constant", "it has one value in all records that have it")
    return None


def _bytes(feature: FeatureSummary) -> SemanticType | None:
    if feature.not_text:
        return SemanticType("binary", "bytes that are neither text nor a known image")
    if feature.longest_bytes > 256:
        return SemanticType("text", f"texts of up to {feature.longest_bytes:,} bytes")
    if _is_unique(feature):
        values = [value for value in feature.counts if isinstance(value, bytes)]
        spaced = sum(b" " in value for value in values)
        named = _ID_WORDS & set(words(feature.name))
        if spaced > len(values) / 2 and not named:
            return SemanticType("text", f"{_distinct(feature)}, with spaces: free text")
        return SemanticType(
            "identifier", f"{_distinct(feature)}, nearly one per record"
        )
    return _categorical(feature)


def _timestamp(feature: FeatureSummary) -> SemanticType | None:
    if not _TIME_WORDS & set(words(feature.name)):
        return None
    low, high = _bounds(feature)
    for unit in _SECOND_UNITS:
        if _SECONDS[0] * unit <= low <= high <= _SECONDS[1] * unit:
            why = "the model would learn the time of the records"
            return SemanticType("timestamp", why)
    return None


def _integer_identifier(feature: FeatureSummary) -> SemanticType | None:
    if not _is_unique(feature):
        return None
    low, high = _bounds(feature)
    running = high - low < 1.1 * feature.present
    if running or _ID_WORDS & set(words(feature.name)):
        what = "a running number" if running else "nearly one per record"
        return SemanticType("identifier", f"{_distinct(feature)}, {what}")
    return None


def _code(feature: FeatureSummary) -> SemanticType | None:
    low, high = _bounds(feature)
    named = set(words(feature.name))
    if named & _QUANTITY_WORDS and not named & _ID_WORDS:
        return None
    far = low > max(_LARGE_CODE, _CODE_OFFSET * (high - low))
    few = feature.distinct <= FEW_VALUES and _is_dense(feature, 0.5)
    if few and not far and not named & _CODE_WORDS and _is_count(feature):
        why = f"{_span(feature)}, {_distinct(feature)}, the highest are rare: a count"
        return SemanticType("number", why)
    if far or few or named & _CODE_WORDS:
        return _categorical(feature)
    return None


def _is_count(feature: FeatureSummary) -> bool:
    """Whether high values are rare, so that higher ones may follow."""
    low, high = _bounds(feature)
    if low < 0 or feature.distinct < _MIN_VALUES_OF_COUNT:
        return False
    top = high - (high - low) / 4
    rare = sum(count for value, count in feature.counts.items() if _above(value, top))
    return rare < _COUNT_TAIL * feature.values


def _above(value: object, limit: float) -> bool:
    return isinstance(value, int) and value > limit


def _position(feature: FeatureSummary) -> SemanticType | None:
    limit = position_limit(feature.name)
    low, high = _bounds(feature)
    if limit and -limit <= low and high <= limit:
        why = f"{_span(feature)} degrees, a position"
        return SemanticType("position", why)
    return None


def position_limit(name: str) -> int | None:
    """Returns 90 for a latitude's name, 180 for a longitude's, else None."""
    named = set(words(name))
    if named & {"lat", "latitude"}:
        return 90
    return 180 if named & {"lon", "lng", "long", "longitude"} else None


def _categorical(feature: FeatureSummary) -> SemanticType:
    closed = _is_closed(feature)
    more = "assumed complete" if closed else "more may follow"
    return SemanticType("categorical", f"{_distinct(feature)}, {more}", closed)


_BY_KIND: dict[Kind, tuple] = {
    "bytes": (_bytes,),
    "int": (_timestamp, _integer_identifier, _code),
    "float": (_position,),
}


def _is_closed(feature: FeatureSummary) -> bool:
    """Whether the observed values are probably all that exist."""
    if feature.many or feature.distinct > MANY_VALUES:
        return False
    if feature.kind == "int" and not _is_dense(feature, 0.9):
        return False
    once = sum(count == 1 for count in feature.counts.values())
    return feature.distinct <= FEW_VALUES or once <= 0.05 * feature.distinct


def _is_dense(feature: FeatureSummary, fraction: float) -> bool:
    """Whether the whole numbers fill at least this fraction of their range."""
    low, high = _bounds(feature)
    return not feature.many and feature.distinct >= fraction * (high - low + 1)


def _is_unique(feature: FeatureSummary) -> bool:
    if feature.present < _MIN_RECORDS_OF_IDENTIFIER:
        return False
    if feature.many:
        # Only the first values were counted each; their share is taken for all.
        seen = sum(feature.counts.values())
        return feature.distinct >= _UNIQUE_FRACTION * seen
    return feature.distinct >= _UNIQUE_FRACTION * feature.present


def _bounds(feature: FeatureSummary) -> tuple[float, float]:
    low, high = feature.low, feature.high
    return (math.nan if low is None else low, math.nan if high is None else high)


def _span(feature: FeatureSummary) -> str:
    low, high = _bounds(feature)
    if feature.kind == "int":
        return f"{low:,} to {high:,}"
    return f"{low:.6g} to {high:.6g}"


def _distinct(feature: FeatureSummary) -> str:
    return f"{feature.distinct:,}{' or more' if feature.many else ''} values"


def share(feature: FeatureSummary) -> str:
    """Returns ``1 of 10,502 records``."""
    return f"{feature.present:,} of {feature.records:,} records"


def _channels(feature: FeatureSummary) -> str:
    seen = sorted({image.channels for image in feature.images if image.width})
    return f"{' or '.join(map(str, seen))} channel{'s' if seen != [1] else ''}"
