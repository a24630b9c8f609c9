"""Validates a config's data sections against the schema and each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.anomaly_kind import KINDS, OF_NO_FEATURE
from components.data_verdict.policy import SPLITS, Rule
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.config.problems import KeyPath, Problems
from sluice.errors import ConfigError
from sluice.tfrecords.image_decoder import CHANNELS


def check_data(config: Config, schema: schema_pb2.Schema, problems: Problems) -> None:
    """Adds problems of patterns, splits, feature names and anomaly rules."""
    _check_patterns(config, problems)
    features = {feature.name: feature for feature in schema.feature}
    hashed = config.data.hash_splits
    if hashed and hashed.by is not None:
        path: KeyPath = ("data", "hash_splits", "by")
        if hashed.by not in features:
            problems.unknown_feature(path, hashed.by, features)
        elif features[hashed.by].type not in (schema_pb2.INT, schema_pb2.BYTES):
            problems.add(
                path,
                f"records cannot be split by the feature {hashed.by!r}",
                expected="a feature of the type INT or BYTES",
                actual=schema_pb2.FeatureType.Name(features[hashed.by].type),
                hint="choose a feature that identifies the user or object of a record",
            )
    for index, name in enumerate(config.sensitive):
        if name not in features:
            problems.unknown_feature(("sensitive", index), name, features)
        elif name == config.label.feature:
            problems.add(
                ("sensitive", index),
                "the label cannot be sensitive: its classes are shown everywhere",
                hint="leave it out, or use class names that reveal nothing",
            )
    _check_images(config, problems)
    _check_slices(config, problems)
    for index, rule in enumerate(config.validate_data.rules):
        path = ("validate", "rules", index)
        if rule.anomaly is not None and rule.anomaly not in KINDS:
            what = f"there is no kind of anomaly {rule.anomaly!r}"
            problems.unknown((*path, "anomaly"), what, rule.anomaly, KINDS)
        elif rule.feature is not None:
            _check_feature_rule(rule, (*path, "feature"), features, problems)
    _check_counts(config, problems)


def _check_feature_rule(
    rule: Rule, path: KeyPath, features: Mapping[str, Any], problems: Problems
) -> None:
    """Adds a problem for a rule that can never apply."""
    assert rule.feature is not None
    if rule.anomaly in OF_NO_FEATURE:
        problems.add(
            path,
            f"anomalies of the kind {rule.anomaly!r} have no feature, so this rule can "
            "never apply",
            hint="leave out 'feature'",
        )
    # A feature that is not in the schema is a `new_feature` anomaly.
    elif rule.feature not in features and rule.anomaly not in (None, "new_feature"):
        problems.unknown_feature(path, rule.feature, features)


def _check_patterns(config: Config, problems: Problems) -> None:
    data = config.data
    named: Iterable[tuple[KeyPath, str | None]] = [
        (("data", "files"), data.files),
        (("data", "serving"), data.serving),
        *(
            (("data", "splits", name), getattr(data.splits, name, None))
            for name in SPLITS
        ),
    ]
    for path, pattern in named:
        if pattern is None:
            continue
        try:
            SpanPattern.parse(pattern)
        except ConfigError as error:
            problems.add_error(path, error)
    patterns = list(data.patterns.values())
    if len(set(patterns)) < len(patterns):
        problems.add(
            ("data", "splits"),
            "two splits have the same pattern",
            expected="each file in one split, so that no model is evaluated on its "
            "training data",
        )


def _check_images(config: Config, problems: Problems) -> None:
    """Adds a problem for channels that no allowed image format can have."""
    if config.examples.images is None:
        return
    formats = config.examples.images.formats
    for name, spec in (config.features or {}).items():
        if not isinstance(spec, Image):
            continue
        if not any(spec.channels in CHANNELS[item] for item in formats):
            possible = {number for item in formats for number in CHANNELS[item]}
            problems.add(
                ("features", name, "channels"),
                f"no allowed image format can be decoded to {spec.channels} channels",
                expected=" or ".join(map(str, sorted(possible)))
                + f" for {', '.join(formats)} (examples.images.formats)",
                actual=str(spec.channels),
            )


def _check_slices(config: Config, problems: Problems) -> None:
    """Adds a problem for slices by a sensitive feature, which would show its values."""
    slices: list[tuple[KeyPath, Iterable[str]]] = [
        (("evaluate", "slices", index), names)
        for index, names in enumerate(config.evaluate.slices)
    ]
    slices += [
        (("evaluate", "thresholds", index, "slice"), item.slice)
        for index, item in enumerate(config.evaluate.thresholds)
        if item.slice is not None
    ]
    for path, names in slices:
        for name in names:
            if name in config.sensitive:
                problems.add(
                    path,
                    f"metrics per value of {name!r} would show its values",
                    expected="features that are not in 'sensitive'",
                )


def _check_counts(config: Config, problems: Problems) -> None:
    limits = config.validate_data
    for key in ("min_examples", "max_examples"):
        for split in getattr(limits, key):
            if split not in config.data.split_names:
                what = f"there is no split {split!r} in data"
                path = ("validate", key, split)
                problems.unknown(path, what, split, config.data.split_names)
    for split, least in limits.min_examples.items():
        most = limits.max_examples.get(split)
        if most is not None and most < least:
            problems.add(
                ("validate", "max_examples", split),
                "max_examples is less than min_examples",
                expected=f"{least} or more (validate.min_examples.{split})",
                actual=str(most),
            )


def warn_of_data(config: Config, problems: Problems) -> None:
    """Warns if the model gate uses a split that training has used."""
    where = ("data", "splits" if config.data.splits else "hash_splits")
    if "test" not in config.data.split_names:
        problems.warn(
            where,
            "there is no test split, so the model gate uses eval, which training "
            "has already used (early stopping)",
        )
