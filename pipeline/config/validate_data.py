"""Validates a config's data sections against the schema and each other."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_metadata.proto.v0 import schema_pb2

from components.tfrecord_gen.placeholders import SpanPattern
from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.config.problems import KeyPath, Problems
from sluice.errors import ConfigError
from sluice.tfrecords.image_decoder import CHANNELS


def check_data(config: Config, schema: schema_pb2.Schema, problems: Problems) -> None:
    """Adds problems of patterns, splits, and the features that data sections name."""
    features = {feature.name: feature for feature in schema.feature}
    _check_patterns(config, problems)
    hashed = config.data.hash_splits
    if hashed and hashed.by is not None:
        path: KeyPath = ("data", "hash_splits", "by")
        if hashed.by not in features:
            problems.unknown_feature(path, hashed.by, features)
        elif features[hashed.by].type not in (schema_pb2.INT, schema_pb2.BYTES):
            problems.add(path, f"records cannot be split by {hashed.by!r}, a FLOAT")
    for index, name in enumerate(config.sensitive):
        if name not in features:
            problems.unknown_feature(("sensitive", index), name, features)
        elif name == config.label.feature:
            what = "the label cannot be sensitive: its classes are shown everywhere"
            problems.add(("sensitive", index), what)
    for index, rule in enumerate(config.validate_data.rules):
        # A feature that is not in the schema is a `new_feature` anomaly.
        path = ("validate", "rules", index, "feature")
        is_known = rule.feature in (None, *features)
        if not is_known and rule.anomaly not in (None, "new_feature"):
            problems.unknown_feature(path, str(rule.feature), features)
    _check_images(config, problems)
    _check_slices(config, problems)
    for key in ("min_examples", "max_examples"):
        for split in getattr(config.validate_data, key):
            if split not in config.data.split_names:
                what = f"there is no split {split!r} in data"
                path = ("validate", key, split)
                problems.unknown(path, what, split, config.data.split_names)


def _check_patterns(config: Config, problems: Problems) -> None:
    data = config.data
    named: dict[KeyPath, str | None] = {
        ("data", "files"): data.files,
        ("data", "serving"): data.serving,
    }
    for name, pattern in data.splits or ():
        named["data", "splits", name] = pattern
    for path, pattern in named.items():
        if pattern is not None:
            try:
                SpanPattern.parse(pattern)
            except ConfigError as error:
                problems.add_error(path, error)


def _check_images(config: Config, problems: Problems) -> None:
    """Adds a problem for channels that no allowed image format can have."""
    if config.examples.images is None:
        return
    formats = config.examples.images.formats
    for name, spec in (config.features or {}).items():
        if isinstance(spec, Image) and not any(
            spec.channels in CHANNELS[item] for item in formats
        ):
            what = f"none of {', '.join(formats)} decodes to {spec.channels} channels"
            problems.add(("features", name, "channels"), what)


def _check_slices(config: Config, problems: Problems) -> None:
    """Adds a problem for slices by a sensitive feature, which would show its values."""
    slices: list[tuple[KeyPath, Iterable[str]]] = [
        (("evaluate", "slices", index), names)
        for index, names in enumerate(config.evaluate.slices)
    ]
    slices += [
        (("evaluate", "thresholds", index, "slice"), item.slice or ())
        for index, item in enumerate(config.evaluate.thresholds)
    ]
    for path, names in slices:
        for name in {*names} & {*config.sensitive}:
            problems.add(path, f"metrics per value of {name!r} would show its values")
