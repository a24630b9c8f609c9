"""Chooses the features of a model and their kinds, with reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.scaffold.semantic_type import (
    SemanticType,
    common_image,
    semantic_type_of,
    words,
)
from pipeline.scaffold.summarize import FeatureSummary, Summary, Value
from sluice.tfrecords import parse_tf_example
from sluice.tfrecords.image_decoder import CHANNELS
from sluice.tfrecords.image_header import ImageHeader

# The CNN's dense layer grows with the image: at 96 x 96 it has 5 million weights, at
# 192 x 192 it would have 19 million.
MAX_SIDE = 96
# The CNN halves an image twice.
MIN_SIDE = 4
_MIN_BUCKETS, _MAX_BUCKETS = 16, 4096
_QUANTILES = 10
_GROUPS = frozenset(
    "user patient customer client person subject account device session household "
    "member driver participant".split()
)
_MIN_GROUPS = 20
# With fewer records per value, a random feature may seem to determine the label.
_RECORDS_PER_VALUE = 10
_PURE = 0.999


@dataclass(frozen=True)
class FeatureChoice:
    """How a feature is used, and why.

    Attributes:
      spec: the config's entry, such as ``{"kind": "numeric"}``; None: it is left out.
      why: the reason, a clause without a full stop.
    """

    name: str
    semantic_type: SemanticType
    spec: Mapping[str, int | str] | None
    why: str


def choose_features(
    summary: Summary, label: str, leaks: Mapping[str, float], group: str | None = None
) -> list[FeatureChoice]:
    """Returns a choice for every feature but the label, in their order.

    ``leaks`` determine the label in a fraction of the records, by the values of
    ``group`` records are split.
    """
    semantic_types = {
        name: semantic_type_of(feature)
        for name, feature in summary.features.items()
        if name != label
    }
    has_one_image = [item.name for item in semantic_types.values()].count("image") == 1
    choices = []
    for name, semantic_type in semantic_types.items():
        if name == group:
            semantic_type = SemanticType(
                "group", "records are split by it, so test has other values"
            )
        elif semantic_type.used and name in leaks:
            why = f"it determines the label in {leaks[name]:.1%} of the records"
            semantic_type = SemanticType("leak", why)
        feature, spec, why = summary.features[name], None, semantic_type.why
        if semantic_type.used and has_one_image and semantic_type.name != "image":
            why = "the CNN uses only the image"
        elif semantic_type.used:
            spec = _spec(feature, semantic_type)
            why += _change(feature) if semantic_type.name == "image" else ""
        choices.append(FeatureChoice(name, semantic_type, spec, why))
    return choices


def group_feature(summary: Summary, label: str) -> str | None:
    """Returns the feature that identifies the person or device of a record, or None.

    Only a feature that every record has, and of which most values occur repeatedly:
    records of one person would otherwise be in several splits.
    """
    for name, feature in summary.features.items():
        named = words(name)
        whose = named and (named[-1] in _GROUPS or named[-1] in ("id", "uuid"))
        if name == label or not whose or not _GROUPS & set(named):
            continue
        if feature.kind not in ("int", "bytes"):
            continue
        repeated = 2 * feature.distinct <= sum(feature.counts.values())
        whole = feature.always and feature.single and len(feature.kinds) == 1
        if whole and repeated and feature.distinct >= _MIN_GROUPS:
            return name
    return None


def image_size(feature: FeatureSummary) -> tuple[int, int, int]:
    """Returns height, width and channels that images are resized to."""
    most = common_image(feature)
    scale = min(1.0, MAX_SIDE / max(most.height, most.width))
    height = max(MIN_SIDE, round(most.height * scale))
    width = max(MIN_SIDE, round(most.width * scale))
    return height, width, _channels(feature.images)


def _change(feature: FeatureSummary) -> str:
    """Returns how images are changed for training, as a clause; empty if not at all."""
    height, width, channels = image_size(feature)
    whole = [image for image in feature.images if image.width]
    changed = ""
    if any((image.width, image.height) != (width, height) for image in whole):
        changed += f"; resized to {width} x {height}"
        if max(common_image(feature)[1:3]) > MAX_SIDE:
            changed += ", as the CNN grows with the image; other sizes can be set"
    if any(image.channels != channels for image in whole):
        changed += f"; decoded to {channels} channel{'s' if channels != 1 else ''}"
    return changed


def _channels(images: Mapping[ImageHeader, int]) -> int:
    """Returns the smallest number of channels that fits all images."""
    seen = {image.channels for image in images if image.width}
    wanted = 1 if seen <= {1, 2} else 4 if seen == {4} else 3
    decodable = all(wanted in CHANNELS[image.format] for image in images)
    return wanted if decodable else 3


def _spec(feature: FeatureSummary, semantic_type: SemanticType) -> dict[str, int | str]:
    if semantic_type.name == "image":
        height, width, channels = image_size(feature)
        size = {"height": height, "width": width, "channels": channels}
        return {"kind": "image", **size}
    if semantic_type.name == "number":
        return {"kind": "numeric"}
    if semantic_type.name == "position":
        return {"kind": "bucketized", "buckets": _QUANTILES}
    if semantic_type.closed:
        return {"kind": "vocabulary"}
    return {"kind": "hashed", "buckets": _buckets(feature)}


def _buckets(feature: FeatureSummary) -> int:
    """Returns a power of two that is at least the number of values."""
    if feature.many:
        return _MAX_BUCKETS
    wanted = 1 << max(feature.distinct - 1, 1).bit_length()
    return min(_MAX_BUCKETS, max(_MIN_BUCKETS, wanted))


def find_leaks(
    records: Iterable[bytes], summary: Summary, label: str, names: Collection[str]
) -> dict[str, float]:
    """Returns features that determine the label, with the fraction of the records.

    Such a feature was usually recorded with the label or after it, and is not known at
    prediction time. Every record has a label.
    """
    majority = max(summary.features[label].counts.values()) / summary.records
    watched = [name for name in names if _is_repeated(summary, name)]
    if not watched or majority >= _PURE:
        return {}
    labels: dict[str, defaultdict[Value, Counter[Value]]] = {
        name: defaultdict(Counter) for name in watched
    }
    for data in records:
        features = parse_tf_example.parse(data).features.feature
        truth = _value(features[label])
        for name in watched:
            # Reading a missing key of a proto's map would add it.
            if name in features and (value := _value(features[name])) is not None:
                labels[name][value][truth] += 1
    leaks = {}
    for name in watched:
        by_value = labels[name].values()
        total = sum(counter.total() for counter in by_value)
        right = sum(max(counter.values()) for counter in by_value)
        share = right / total if total else 0.0
        if total >= summary.records / 2 and share >= _PURE:
            leaks[name] = share
    return leaks


def _is_repeated(summary: Summary, name: str) -> bool:
    feature = summary.features[name]
    enough = feature.distinct * _RECORDS_PER_VALUE <= feature.present
    return enough and not feature.many and feature.distinct > 1


def _value(feature: Any) -> Any:
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else None
    return values[0] if values else None
