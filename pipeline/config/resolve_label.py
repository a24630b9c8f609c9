"""The label: its classes, those of the config, checked, or else of the schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.label import Label
from pipeline.config.problems import Problems
from pipeline.config.resolve_features import check_one_value, find_feature
from schemas import loader
from sluice.config_section import Classes
from sluice.metrics import THRESHOLD

_PATH = ("label", "feature")
# A float32 has every whole number up to here.
_EXACT_FLOAT = 2**24
_CATEGORIES, _NUMBERS = ("INT", "BYTES"), ("INT", "FLOAT")


def resolve_label(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Label:
    """Returns the label with its classes, none of a regression.

    Adds problems of the label; there are no classes if they are wrong.
    """
    label, classes = config.label, None
    if label.targets and label.task != "regression":
        problems.add(("label", "targets"), "only a regression has targets")
    feature = find_feature(_PATH, label.feature, schema, problems)
    if feature is None:
        pass
    elif label.task == "regression":
        if _has_type(feature, label, _NUMBERS, problems):
            _check_is_fixed(feature, problems)
            _check_targets(feature, label, problems)
        if label.classes:
            problems.add(("label", "classes"), "a regression has no classes")
    elif is_per_class(feature):
        _check_is_fixed(feature, problems)
        classes = _classes_of_places(feature, label, problems)
    elif _has_type(feature, label, _types(label), problems):
        if label.task == "classification" and not loader.has_one_value(feature):
            text = f"the label {label.feature!r} may have several values per record"
            hint = "to predict all of them: task: multi_label"
            problems.add(_PATH, text, hint=hint)
        elif label.task == "classification":
            check_one_value(_PATH, feature, problems)
        classes = _classes_of_domain(label, schema, feature, problems)
    positive = None
    if label.task != "classification" or (classes and len(classes) != 2):
        for key, default in (("positive", None), ("threshold", THRESHOLD)):
            if getattr(label, key) != default:
                text = "this is for a classification of two classes"
                problems.add(("label", key), text)
    elif classes:
        classes = _with_positive_last(classes, label, feature, problems)
        positive = classes[1]
    return label.model_copy(update={"classes": classes or None, "positive": positive})


def _with_positive_last(
    classes: Classes, label: Label, feature: schema_pb2.Feature, problems: Problems
) -> Classes:
    """Returns both classes, the positive one last: the model gives its probability."""
    path, names = ("label", "positive"), [*map(str, classes)]
    if label.positive is None or str(label.positive) == names[1]:
        return classes
    if is_per_class(feature):
        text = "the classes are the places of a list, of which the second is positive"
        problems.add(path, text)
    elif str(label.positive) != names[0]:
        text = f"there is no class {label.positive!r}"
        problems.unknown(path, text, label.positive, names)
    return classes[::-1]


def _check_is_fixed(feature: schema_pb2.Feature, problems: Problems) -> None:
    if len(feature.shape.dim) != 1 or feature.presence.min_fraction < 1:
        text = f"the label {feature.name!r} has no fixed number of values per record"
        hint = "in the schema, give it shape { dim { size: 1 } } and presence"
        problems.add(_PATH, text, hint=f"{hint} {{ min_fraction: 1 }}")


def _check_targets(
    feature: schema_pb2.Feature, label: Label, problems: Problems
) -> None:
    size, path = _size(feature), ("label", "targets")
    if label.targets and len(label.targets) != size:
        text = f"there are {len(label.targets)} targets, and {size} values per record"
        problems.add(path, text)
    elif size > 1 and not label.targets:
        names = ", ".join(f"{label.feature}_{i}" for i in range(min(size, 3)))
        text = f"the {size} values per record of the label {label.feature!r} have no "
        hint = f"targets: [{names}{', ...' if size > 3 else ''}]"
        problems.add(path, f"{text}names, and may have several units", hint=hint)


def _has_type(
    feature: schema_pb2.Feature, label: Label, types: Sequence[str], problems: Problems
) -> bool:
    name = schema_pb2.FeatureType.Name(feature.type)
    if name in types:
        return True
    text = f"the label {label.feature!r} of task {label.task} must be"
    hint = "to predict a number: task: regression" if name == "FLOAT" else None
    if hint and label.task == "classification":
        hint += "; or list classes: classes: [0, 1]"
    problems.add(_PATH, f"{text} {' or '.join(types)}, not {name}", hint=hint)
    return False


def _types(label: Label) -> Sequence[str]:
    """Returns the types of a label of classes; no domain lists those of floats."""
    is_listed = label.task == "classification" and label.classes
    return (*_CATEGORIES, "FLOAT") if is_listed else _CATEGORIES


def _classes_of_places(
    feature: schema_pb2.Feature, label: Label, problems: Problems
) -> Classes:
    """Returns the classes of a one-hot label, or of 0 and 1 for each of several."""
    size = _size(feature)
    if loader.number_bounds(feature) != (0, 1):
        text = f"the schema does not say that the {size} values of the label "
        where = f"{text}{label.feature!r} are 0 and 1, one for each class"
        problems.add(_PATH, where, hint="give it a domain { min: 0 max: 1 }")
    classes = label.classes or tuple(range(size))
    if len(classes) == size:
        return classes
    text = f"there are {len(classes)} classes, and {size} values per record"
    problems.add(("label", "classes"), text)
    return ()


def _classes_of_domain(
    label: Label, schema: Any, feature: schema_pb2.Feature, problems: Problems
) -> Classes:
    values: Any = tuple(loader.class_values(schema, label.feature) or ())
    classes, path = label.classes or values, ("label", "classes")
    if len(classes) < 2:
        is_text = feature.type == schema_pb2.BYTES
        domain = "string_domain" if is_text else "categorical int_domain"
        text = f"the schema does not list the classes of {label.feature!r}"
        problems.add(path, f"{text}: give it a {domain}, or list them here")
    elif others := [x for x in classes if not _is_allowed(x, feature, values)]:
        shown = ", ".join(map(str, values[:12])) + (" ..." if len(values) > 12 else "")
        text = f"the classes are not those of the schema's domain: {shown or 'a range'}"
        problems.add(path, text, hint=f"change {others[0]!r}, or the domain")
    elif "" in classes:
        text = "the empty string is a missing value, and no class"
        problems.add(
            path, text, hint="write another one into the records and the schema"
        )
    else:
        return classes
    return ()


def _is_allowed(value: Any, feature: schema_pb2.Feature, values: Classes) -> bool:
    """Whether a feature may have a value; ``values`` are those of its domain."""
    is_text = feature.type == schema_pb2.BYTES
    if is_text or isinstance(value, str):
        return is_text and isinstance(value, str) and value in (values or (value,))
    if feature.type == schema_pb2.FLOAT and abs(value) > _EXACT_FLOAT:
        return False
    low, high = loader.number_bounds(feature) or (None, None)
    return (low is None or value >= low) and (high is None or value <= high)


def is_per_class(feature: schema_pb2.Feature) -> bool:
    """Whether each record has a number for each class."""
    return feature.type != schema_pb2.BYTES and _size(feature) > 1


def _size(feature: schema_pb2.Feature) -> int:
    return math.prod(dim.size for dim in feature.shape.dim)
