"""Proposes a config and a schema, with the reason of each choice as a comment.

The proposed thresholds only rule out models that have learned nothing. The quality that
is needed cannot be derived from data; a comment asks the user to set it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.choose import (
    GROUP,
    FeatureChoice,
    choose_features,
    is_closed,
    is_not_finite,
)
from pipeline.scaffold.choose_label import (
    class_counts,
    gives_away,
    indicators,
    listed_classes,
    positive_class,
    task_of,
)
from pipeline.scaffold.find_splits import SplitGuess
from pipeline.scaffold.sample import Column, Sample, infer_schema, set_int_classes
from schemas.edit_schema import schema_text

FILL_IN = (
    "no feature can be used as it is: fill in 'features', or write a 'preprocessing' "
    "of your own instead, see docs/training.md#features"
)
_DOMAIN = "domain_info"
# From this ratio of the largest to the smallest class on, `init` says what helps.
_IMBALANCED = 10
# Accuracy limit, from the largest class's share (0) to a perfect model (1).
_LEARNED = 0.05
_SMALL = 5000
_LIMIT = "The first limit only rules out a model that learned nothing."
_DAYS = "It trains on all days, or spans, that there are; 'window: 1' is the newest."
_HEAD = """\
{name}: proposed by 'sluice init' from {sample}.
Review it, then check it with 'sluice validate {name}'.
'sluice config {name}' prints all keys, with their defaults.
"""
_SCHEMA_HEAD = """\
# {name}: schema of the records.
# proto-file: tensorflow_metadata/proto/v0/schema.proto
# proto-message: tensorflow.metadata.v0.Schema
#
# Proposed by 'sluice init' and TFDV from {sample}.
# Review it: the data gate rejects data that does not conform to it.

"""


@dataclass(frozen=True)
class Proposal:
    """Proposed config and schema of a data set.

    Attributes:
      model: the built-in one that fits the features.
      features: all but the label.
      warnings: what the user should check, a clause each.
    """

    config_text: str
    schema_text: str
    model: str
    features: tuple[FeatureChoice, ...]
    warnings: tuple[str, ...]


def propose(
    name: str,
    data_dir: str,
    splits: SplitGuess,
    sample: Sample,
    label: tuple[Column, str],
) -> Proposal:
    """Returns the proposed config and schema.

    Where no feature can be used, ``features`` is empty, to be filled in by the user.

    Args:
      name: of the pipeline.
      data_dir: for the config.
      splits: how the records are split.
      sample: of the records.
      label: its feature, and why it was chosen.
    """
    column, why = label
    choices = choose_features(sample, column.name)
    groups = [choice.name for choice in choices if choice.seen_as == GROUP]
    by = _split_by(groups, splits, sample)
    used = {choice.name: choice.spec for choice in choices if choice.spec}
    features = CommentedMap({key: _flow(spec) for key, spec in used.items()})
    columns = sample.columns
    has_images = any(columns[key].images for key in used)
    rules = [
        _flow({"feature": key, "anomaly": "not_finite", "action": "warn"})
        for key, one in columns.items()
        if is_not_finite(one)
    ]
    sensitive = [choice.name for choice in choices if choice.seen_as == "sensitive"]
    is_small = sample.is_complete and sample.records < _SMALL
    model = _model([spec["kind"] for spec in used.values()])
    config = {
        "version": 1,
        "name": name,
        "description": f"Predicts {column.name}.",
        "data": {"dir": data_dir, **_splits(splits, by)},
        "examples": _examples(splits, has_images),
        "schema": f"schemas/{name}/schema.pbtxt",
        "validate": {"rules": rules} if rules else {},
        "sensitive": sensitive,
        "label": {"feature": column.name, **_task(column)},
        "features": features,
        "model": model,
        "train": {
            "epochs": 20,
            "batch_size": 32 if is_small else 128,
            "early_stopping": {"patience": 3},
        },
        "evaluate": _evaluate(column, sample.records),
    }
    document = CommentedMap({key: x for key, x in config.items() if x or x is features})
    document.yaml_set_start_comment(_HEAD.format(name=name, sample=sample.text))
    left_out = [f"Left out: {x.name}: {x.why}." for x in choices if not x.spec]
    for key, *lines in (
        ("data", f"Splits: {splits.why}."),
        ("examples", *[_DAYS][: splits.window > 1]),
        ("validate", "Found in the records; the model does not use these features."),
        ("sensitive", "Chosen by name. Their values are never shown, only counted."),
        ("label", f"The label: {why}. {_classes(column)}"),
        ("features", "The model uses only these." if used else FILL_IN, *left_out),
        ("model", "Or your own package.module:build_model."),
        ("evaluate", _LIMIT),
    ):
        _comment(document, key, lines)
    for choice in choices:
        _comment(features, choice.name, [choice.why], indent=2)
    head = _SCHEMA_HEAD.format(name=name, sample=sample.text)
    schema = _schema(sample, column.name, choices, sensitive)
    return Proposal(
        config_text=_yaml(document, [data_dir, *columns]),
        schema_text=head + schema_text(schema),
        model=model,
        features=tuple(choices),
        warnings=(
            *_warnings(sample, column, used),
            *([] if by else _group_warnings(groups)),
        ),
    )


def _task(label: Column) -> dict[str, Any]:
    task, classes = task_of(label), CommentedSeq(listed_classes(label))
    classes.fa.set_flow_style()
    if targets := _targets(label):
        return {"task": task, "targets": CommentedSeq(targets)}
    task_key = {} if task in (None, "classification") else {"task": task}
    keys = {**task_key, "classes": classes, "positive": positive_class(label)}
    return {key: value for key, value in keys.items() if value not in (None, [])}


def _targets(label: Column) -> list[str]:
    """Returns names of the values of a regression with several per record."""
    size = label.lengths[1] if task_of(label) == "regression" else 1
    return [f"{label.name}_{i}" for i in range(size)] if size > 1 else []


def _classes(label: Column) -> str:
    if _targets(label):
        return "Several numbers are predicted: name them, here and in 'evaluate'."
    if task_of(label) == "regression":
        return "A number is predicted. For classes, list them instead of 'task'."
    if listed_classes(label):
        return "Its classes are the values that were seen; add to 'classes' any other."
    if indicators(label) is None:
        return "Its classes are its domain in the schema."
    return "Its classes are the places of its list, from 0; name them with 'classes'."


def _split_by(groups: Sequence[str], splits: SplitGuess, sample: Sample) -> str | None:
    """Returns the feature that keeps the records of an entity in one split, if any."""
    if splits.files is None or len(groups) != 1:
        return None
    return groups[0] if sample.columns[groups[0]].is_required else None


def _group_warnings(groups: Sequence[str]) -> list[str]:
    if not groups:
        return []
    names = " or ".join(map(repr, groups))
    return [
        f"records of one {names} may be in several splits, so that the model is judged "
        "on those it has seen records of: see hash_splits.by in docs/config.md"
    ]


def _splits(splits: SplitGuess, by: str | None) -> dict[str, Any]:
    if splits.files is None:
        return {"splits": dict(splits.splits)}
    key = {"by": by} if by else {}
    parts = _flow({"train": 8, "eval": 1, "test": 1, **key})
    return {"files": splits.files, "hash_splits": parts}


def _examples(splits: SplitGuess, has_images: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if splits.window:
        settings |= {"window": splits.window, "complete_when": "always"}
    if has_images:
        settings["images"] = _flow({})
    return settings


def _model(kinds: list[object]) -> str:
    """Returns the built-in model that fits the features."""
    if {"image", "pixels"} & {*kinds}:
        return "cnn" if len(kinds) == 1 else "dense"
    return "dense" if {*kinds} <= {"numeric", "vector", "time"} else "wide_deep"


def _evaluate(label: Column, records: int) -> dict[str, Any]:
    # Accuracy says little if one class has most of the records.
    pr = {"class": "AUC", "name": "auc_pr", "params": {"curve": "PR"}}
    metrics: list[Any] = []
    bound: str = "lower_bound"
    worse: dict[str, Any] = {"direction": "higher_is_better", "absolute": -0.01}
    floors: dict[str, float] = {}
    if task_of(label) == "regression":
        names = {"rmse": "RootMeanSquaredError", "mae": "MeanAbsoluteError"}
        names |= {"r2": "R2Score"}
        for target, deviation in zip(
            _targets(label) or [""], _deviations(label), strict=True
        ):
            of, key = (f"{target}_", {"target": target}) if target else ("", {})
            metrics += [
                _flow({"class": y, "name": of + x, **key}) for x, y in names.items()
            ]
            floors[f"{of}rmse"] = float(f"{(1 - _LEARNED) * deviation:.4g}")
        metrics.append("ExampleCount")
        bound, worse = "upper_bound", {"direction": "lower_is_better", "relative": 0.05}
    elif task_of(label) == "multi_label":
        metrics = ["AUC", "BinaryAccuracy", "ExampleCount"]
        metrics += [
            _flow({"class": name, "name": f"macro_{name.lower()}", "average": "macro"})
            for name in ("AUC", "Precision", "Recall")
        ]
        floors["macro_auc"] = 0.55
    elif len(label.counts) == 2 and indicators(label) is None:
        metrics = ["AUC", _flow(pr), "BinaryAccuracy", "ExampleCount"]
        floors["auc"] = 0.55
    else:
        accuracy = {"class": "SparseCategoricalAccuracy", "name": "accuracy"}
        metrics = [_flow(accuracy), "ExampleCount"]
        majority = max(class_counts(label).values()) / records
        floors["accuracy"] = round(majority + _LEARNED * (1 - majority), 3)
    limits: list[dict[str, Any]]
    thresholds = []
    worse["over"] = "best"
    for metric, floor in floors.items():
        limits = [{bound: floor}, {"better_than": "reference"}]
        limits.append({"change": dict(worse)})
        thresholds += [_flow({"metric": metric, **limit}) for limit in limits]
    return {"metrics": metrics, "thresholds": thresholds}


def _deviations(label: Column) -> list[float]:
    """Returns the standard deviation of each number of a record."""
    values = label.values.to_numpy(zero_copy_only=False).astype("float64")
    return [float(x) for x in values.reshape(label.records, -1).std(axis=0)]


def _schema(
    sample: Sample,
    label: str,
    choices: Iterable[FeatureChoice],
    sensitive: list[str],
) -> schema_pb2.Schema:
    """Returns the inferred schema, with the domains that the choices suggest."""
    target = sample.columns[label]
    task = task_of(target) or "classification"
    # New values of a time are expected.
    times = [choice.name for choice in choices if choice.seen_as == "time"]
    schema = infer_schema(sample.statistics, label, [*sensitive, *times], task)
    features = {feature.name: feature for feature in schema.feature}
    if indicators(target) is None and task == "multi_label":
        _allow_any_number(features[label])
    elif target.type == "FLOAT" and task != "regression":
        domain = features[label].float_domain
        domain.min, domain.max = 0, max(1, target.bounds[1])
    for choice in choices:
        column, feature = sample.columns[choice.name], features[choice.name]
        if choice.seen_as == "image":
            feature.image_domain.SetInParent()
        elif choice.seen_as == "pixels" and (domain := feature.WhichOneof(_DOMAIN)):
            feature.ClearField(domain)
        elif choice.seen_as in ("categories", "tokens"):
            _allow_any_number(feature)
        if choice.seen_as in ("categorical", "categories") and column.type == "INT":
            feature.ClearField("int_domain")
            feature.int_domain.is_categorical = True
            if is_closed(column):
                set_int_classes(feature, *column.bounds)
    return schema


def _allow_any_number(feature: schema_pb2.Feature) -> None:
    """Allows records without values, and with more than those of the sample."""
    feature.ClearField("shape")
    feature.ClearField("value_count")
    feature.presence.ClearField("min_fraction")


def _warnings(sample: Sample, label: Column, used: Iterable[str]) -> list[str]:
    low, high = label.bounds
    has_classes = task_of(label) != "regression"
    is_range = has_classes and label.type == "INT" and not listed_classes(label)
    is_range = is_range and indicators(label) is None
    unseen = high - low + 1 - len(label.counts) if is_range else 0
    sorted_ = "if the files are sorted, the schema may lack classes and categories"
    warnings = [] if sample.is_complete else [f"not all records were read: {sorted_}"]
    if unseen:
        warnings.append(
            f"{unseen:,} of the label's classes {low} to {high} were not seen"
        )
    if targets := _targets(label):
        names = f"{targets[0]!r} to {targets[-1]!r}"
        warnings.append(
            f"the label has {len(targets)} numbers, which are called {names}: name "
            "them in 'label.targets' and 'evaluate'"
        )
    for value, count in class_counts(label).items() if has_classes else ():
        if count in (0, sample.records):
            who = "every record has" if count else "no record has"
            warnings.append(f"{who} the class {value!r} of the label: nothing to learn")
    counts = {x: count for x, count in class_counts(label).items() if count}
    rarest, most = min(counts, key=counts.__getitem__), max(counts.values())
    is_one_class = task_of(label) == "classification"
    if is_one_class and most > _IMBALANCED * counts[rarest]:
        warnings.append(
            f"only {counts[rarest]:,} of {sample.records:,} records have the class "
            f"{rarest!r}: 'train.class_weights: balanced' lets all classes count alike "
            "in training, and in 'evaluate' a threshold on auc_pr, or on the Recall of "
            "that class, shows what accuracy hides"
        )
    for name in used:
        if how := gives_away(sample.columns[name], label):
            advice = "leave it out of 'features' if it is not known when predicting"
            warnings.append(f"{name!r} gives the label away, as {how}: {advice}")
    if not used:
        warnings.append(FILL_IN)
    return warnings


def _flow(values: Mapping[str, Any]) -> CommentedMap:
    """Returns values that are written on one line."""
    one_line = CommentedMap(values)
    one_line.fa.set_flow_style()
    return one_line


def _comment(
    values: CommentedMap, key: str, lines: Iterable[str], indent: int = 0
) -> None:
    if key in values:
        # A line break in a name would end the comment.
        shown = ("".join(c if c.isprintable() else "?" for c in x) for x in lines)
        before = "\n".join(shown)
        values.yaml_set_comment_before_after_key(key, before=before, indent=indent)


def _yaml(values: CommentedMap, names: Iterable[str]) -> str:
    yaml, stream = YAML(), io.StringIO()
    yaml.width = 1000
    yaml.indent(mapping=2, sequence=4, offset=2)
    # Umlauts are readable as they are, but no name may disturb a terminal.
    yaml.allow_unicode = "".join(names).isprintable()
    yaml.dump(values, stream)
    return stream.getvalue()
