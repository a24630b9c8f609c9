"""The label: its classes, those of the config, checked, or else of the schema."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import Label
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.resolve_features import check_one_value, find_feature
from schemas import loader
from sluice.config_section import Classes

_CATEGORIES, _NUMBERS = ("INT", "BYTES"), ("INT", "FLOAT")


def resolve_label(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Label:
    """Returns the label with its classes, none of a regression.

    Adds problems of the label; there are no classes if they are wrong.
    """
    label, path = config.label, ("label", "feature")
    feature = find_feature(path, label.feature, schema, problems)
    classes: Classes = ()
    if feature is None:
        pass
    elif label.task == "regression":
        _check_targets(path, feature, label, problems)
    elif _is_per_class(feature):
        # One-hot, or 0 and 1 for each of several labels.
        size = _size(feature)
        _check_is_fixed(path, feature, problems)
        if loader.number_bounds(feature) != (0, 1):
            domain = f"{schema_pb2.FeatureType.Name(feature.type).lower()}_domain"
            what = f"the schema does not say that the {size} values of the label "
            hint = f"give it the {domain} {{ min: 0 max: 1 }}"
            where = f"{what}{label.feature!r} are 0 and 1, one for each class"
            problems.add(path, where, hint=hint)
        classes = label.classes or tuple(range(size))
        if len(classes) != size:
            what = f"there are {len(classes)} classes, and {size} values per record"
            problems.add(("label", "classes"), what)
            classes = ()
    elif _has_type(path, feature, label, _CATEGORIES, problems):
        if label.task == "classification" and not loader.has_one_value(feature):
            what = f"the label {label.feature!r} may have several values per record"
            hint = "to predict all of them: task: multi_label"
            problems.add(path, what, hint=hint)
        elif label.task == "classification":
            check_one_value(path, feature, problems)
        classes = _classes_of_domain(label, schema, feature, problems)
    return label.model_copy(update={"classes": classes or None})


def _check_targets(
    path: KeyPath, feature: schema_pb2.Feature, label: Label, problems: Problems
) -> None:
    """Adds problems of the label of a regression."""
    if not _has_type(path, feature, label, _NUMBERS, problems):
        return
    _check_is_fixed(path, feature, problems)
    if label.classes:
        problems.add(("label", "classes"), "a regression has no classes")


def _check_is_fixed(
    path: KeyPath, feature: schema_pb2.Feature, problems: Problems
) -> None:
    if len(feature.shape.dim) != 1 or feature.presence.min_fraction < 1:
        what = f"the label {feature.name!r} has no fixed number of values per record"
        hint = "in the schema, give it shape { dim { size: 1 } } and presence"
        problems.add(path, what, hint=f"{hint} {{ min_fraction: 1 }}")


def _has_type(
    path: KeyPath,
    feature: schema_pb2.Feature,
    label: Label,
    types: tuple[str, ...],
    problems: Problems,
) -> bool:
    name = schema_pb2.FeatureType.Name(feature.type)
    if name in types:
        return True
    what = f"the label {label.feature!r} of task {label.task} must be"
    hint = "to predict a number: task: regression" if name == "FLOAT" else None
    problems.add(path, f"{what} {' or '.join(types)}, not {name}", hint=hint)
    return False


def _classes_of_domain(
    label: Label,
    schema: schema_pb2.Schema,
    feature: schema_pb2.Feature,
    problems: Problems,
) -> Classes:
    values: Any = tuple(loader.class_values(schema, label.feature) or ())
    classes, path = label.classes or values, ("label", "classes")
    if len(values) < 2:
        is_text = feature.type == schema_pb2.BYTES
        domain = "string_domain" if is_text else "categorical int_domain"
        what = f"the schema does not list the classes of {label.feature!r}"
        problems.add(path, f"{what}: give it a {domain}")
    elif {*values} != {*classes}:
        shown = ", ".join(map(str, values[:12])) + (" ..." if len(values) > 12 else "")
        what = f"the classes are not those of the schema's domain: {shown}"
        problems.add(path, what, hint="change the one that is wrong")
    else:
        return classes
    return ()


def _is_per_class(feature: schema_pb2.Feature) -> bool:
    """Whether each record has a number for each class."""
    return feature.type != schema_pb2.BYTES and _size(feature) > 1


def _size(feature: schema_pb2.Feature) -> int:
    return math.prod(dim.size for dim in feature.shape.dim)
