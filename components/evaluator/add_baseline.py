"""Merges known metrics of the baseline into the evaluation of a candidate.

The result is what TFMA writes when it evaluates both models: metrics and plots of both,
and the metrics' differences, in the same files. TFMA has no such merge. As in TFMA,
numbers and arrays of numbers have differences. Other features of an EvalConfig, such as
thresholds, need both models; see ``can_add_baseline``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2
from tensorflow_model_analysis.utils import config_util
from tfx.types import standard_component_specs as specs
from tfx.utils import proto_utils

from components.evaluator.evaluation_digests import BASELINE, CANDIDATE
from sluice.storage import atomic
from sluice.tfrecords import tfrecord

# ``metrics`` or ``plots``, and slice (serialized) -> TFMA's MetricKeyAndValue or
# PlotKeyAndValue of each, without a model's name.
ModelMetrics = Mapping[tuple[str, bytes], list[Any]]

# Metrics that compare the predictions of two models.
_NEEDS_BOTH = re.compile(
    "FlipRates?$|^ModelCosineSimilarity$|^SymmetricPredictionDifference$"
)
# Of each kind of file: its message for a slice, and the field with the values.
_FILES: dict[str, tuple[Any, str]] = {
    "metrics": (metrics_for_slice_pb2.MetricsForSlice, "metric_keys_and_values"),
    "plots": (metrics_for_slice_pb2.PlotsForSlice, "plot_keys_and_values"),
}
_CONFIG_FILE = "eval_config.json"
_NUMBERS = ("int32_values", "int64_values", "float32_values", "float64_values")


def can_add_baseline(properties: Mapping[str, Any]) -> bool:
    """Whether the baseline's metrics may be merged, instead of evaluating both models.

    False if TFMA checks thresholds (without a baseline it drops change thresholds, and
    blesses), if the models are evaluated differently or by user code, or if there is
    more than plain metrics.

    Args:
      properties: exec properties of an Evaluator.
    """
    if properties.get(specs.MODULE_FILE_KEY) or properties.get(specs.MODULE_PATH_KEY):
        return False
    config = config_pb2.EvalConfig()
    text = properties.get(specs.EVAL_CONFIG_KEY)
    proto_utils.json_to_proto(text or "{}", config)
    metrics = [metric for spec in config.metrics_specs for metric in spec.metrics]
    return (
        [spec.name for spec in config.model_specs] == [""]
        and _fields([config]) <= {"model_specs", "slicing_specs", "metrics_specs"}
        and _fields(config.metrics_specs) <= {"metrics"}
        and _fields(metrics) <= {"class_name", "module", "config"}
        and not any(_NEEDS_BOTH.search(metric.class_name) for metric in metrics)
    )


def _fields(messages: Iterable[Any]) -> set[str]:
    """Returns the names of the fields that any of some messages has set."""
    return {field.name for message in messages for field, _ in message.ListFields()}


def read_metrics(folder: Path, model_name: str) -> ModelMetrics:
    """Returns the metrics and plots of the ``candidate`` or ``baseline``."""
    # TFMA leaves the name out where there is one model.
    names = {model_name, ""} if model_name == CANDIDATE else {model_name}
    found = {}
    for kind, (message, field) in _FILES.items():
        for path in tfrecord.shards(folder, kind):
            for record in map(message.FromString, tfrecord.read(path)):
                items = [
                    item
                    for item in getattr(record, field)
                    if item.key.model_name in names
                    and not (kind == "metrics" and item.key.is_diff)
                ]
                for item in items:
                    item.key.model_name = ""
                found[kind, _slice(record, field)] = items
    return found


def add_baseline(folder: Path, baseline: ModelMetrics, model_dir: str) -> None:
    """Adds a baseline to the evaluation of one model, which becomes the candidate.

    Args:
      folder: of the evaluation, as written by TFMA.
      baseline: metrics and plots of the baseline.
      model_dir: SavedModel of the baseline.
    """
    for kind, (message, field) in _FILES.items():
        for path in tfrecord.shards(folder, kind):
            records = [message.FromString(data) for data in tfrecord.read(path)]
            for record in records:
                known = baseline.get((kind, _slice(record, field)), ())
                candidate = list(getattr(record, field))
                record.ClearField(field)
                getattr(record, field).extend(_side_by_side(candidate, known))
            tfrecord.write(path, [record.SerializeToString() for record in records])
    _name_models(folder / _CONFIG_FILE, model_dir)


def _side_by_side(candidate: Iterable[Any], baseline: Iterable[Any]) -> Iterator[Any]:
    """Yields the metrics or plots of both models, then the metrics' differences."""
    known = {_key(item): item for item in baseline}
    pairs = [(item, known.get(_key(item))) for item in candidate]
    yield from _named(known.values(), BASELINE)
    yield from _named((item for item, _ in pairs), CANDIDATE)
    for item, before in pairs:
        if before and (difference := _difference(item.value, before.value)):
            changed = type(item)(key=item.key, value=difference)
            changed.key.is_diff = True
            yield from _named([changed], CANDIDATE)


def _named(items: Iterable[Any], model: str) -> Iterator[Any]:
    for item in items:
        copied = type(item)()
        copied.CopyFrom(item)
        copied.key.model_name = model
        yield copied


def _difference(candidate: Any, baseline: Any) -> Any:
    """Returns candidate - baseline; None for what is neither number nor array."""
    if "type" not in candidate.DESCRIPTOR.oneofs_by_name:
        return None  # A plot.
    kind = candidate.WhichOneof("type")
    if kind != baseline.WhichOneof("type"):
        return None
    changed = type(candidate)()
    if kind == "double_value":
        change = candidate.double_value.value - baseline.double_value.value
        changed.double_value.value = change
        return changed
    if kind == "array_value" and candidate.array_value.shape == (
        baseline.array_value.shape
    ):
        changed.CopyFrom(candidate)
        for name in _NUMBERS:
            before = getattr(baseline.array_value, name)
            values = getattr(changed.array_value, name)
            values[:] = [new - old for new, old in zip(values, before, strict=True)]
        return changed
    return None


def _name_models(path: Path, model_dir: str) -> None:
    """Names both models in ``eval_config.json``, as TFMA does."""
    run = json_format.Parse(path.read_text(), config_pb2.EvalRun())
    locations = {CANDIDATE: run.model_locations.pop(""), BASELINE: model_dir}
    run.model_locations.update(locations)
    for spec in run.eval_config.metrics_specs:
        del spec.model_names[:]
    run.eval_config.CopyFrom(
        config_util.update_eval_config_with_defaults(run.eval_config, has_baseline=True)
    )
    atomic.write_text(path, json_format.MessageToJson(run))


def _slice(record: Any, field: str) -> bytes:
    named = type(record)()
    named.CopyFrom(record)
    named.ClearField(field)
    return named.SerializeToString(deterministic=True)


def _key(item: Any) -> bytes:
    """Returns a metric's key without the model's name."""
    key = type(item.key)()
    key.CopyFrom(item.key)
    key.model_name = ""
    return key.SerializeToString(deterministic=True)
