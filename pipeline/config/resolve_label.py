"""The label: its classes, those of the config, checked, or else of the schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import Label
from pipeline.config.problems import Problems
from pipeline.config.resolve_features import check_one_value, find_feature
from schemas import loader
from sluice.config_section import Classes

_PATH = ("label", "feature")
_CATEGORIES, _NUMBERS = ("INT", "BYTES"), ("INT", "FLOAT")


def resolve_label(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Label:
    """Returns the label with its classes, none of a regression.

    Adds problems of the label; there are no classes if they are wrong.
    """
    label, classes = config.label, None
    feature = find_feature(_PATH, label.feature, schema, problems)
    if feature is None:
        pass
    elif label.task == "regression":
        if _has_type(feature, label, _NUMBERS, problems):
            _check_is_fixed(feature, problems)
        if label.classes:
            problems.add(("label", "classes"), "a regression has no classes")
    elif _is_per_class(feature):
        _check_is_fixed(feature, problems)
        classes = _classes_of_places(feature, label, problems)
    elif _has_type(feature, label, _CATEGORIES, problems):
        if label.task == "classification" and not loader.has_one_value(feature):
            what = f"the label {label.feature!r} may have several values per record"
            hint = "to predict all of them: task: multi_label"
            problems.add(_PATH, what, hint=hint)
        elif label.task == "classification":
            check_one_value(_PATH, feature, problems)
        classes = _classes_of_domain(label, schema, feature, problems)
    return label.model_copy(update={"classes": classes or None})


def _check_is_fixed(feature: schema_pb2.Feature, problems: Problems) -> None:
    if len(feature.shape.dim) != 1 or feature.presence.min_fraction < 1:
        what = f"the label {feature.name!r} has no fixed number of values per record"
        hint = "in the schema, give it shape { dim { size: 1 } } and presence"
        problems.add(_PATH, what, hint=f"{hint} {{ min_fraction: 1 }}")


def _has_type(
    feature: schema_pb2.Feature, label: Label, types: Sequence[str], problems: Problems
) -> bool:
    name = schema_pb2.FeatureType.Name(feature.type)
    if name in types:
        return True
    what = f"the label {label.feature!r} of task {label.task} must be"
    hint = "to predict a number: task: regression" if name == "FLOAT" else None
    problems.add(_PATH, f"{what} {' or '.join(types)}, not {name}", hint=hint)
    return False


def _classes_of_places(
    feature: schema_pb2.Feature, label: Label, problems: Problems
) -> Classes:
    """Returns the classes of a one-hot label, or of 0 and 1 for each of several."""
    size = _size(feature)
    if loader.number_bounds(feature) != (0, 1):
        what = f"the schema does not say that the {size} values of the label "
        where = f"{what}{label.feature!r} are 0 and 1, one for each class"
        problems.add(_PATH, where, hint="give it a domain { min: 0 max: 1 }")
    if size > loader.MAX_CLASSES:
        what = f"{size:,} classes are too many: at most {loader.MAX_CLASSES:,}"
        problems.add(_PATH, what)
        return ()
    classes = label.classes or tuple(range(size))
    if len(classes) == size:
        return classes
    what = f"there are {len(classes)} classes, and {size} values per record"
    problems.add(("label", "classes"), what)
    return ()


def _classes_of_domain(
    label: Label, schema: Any, feature: schema_pb2.Feature, problems: Problems
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
