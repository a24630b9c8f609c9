"""Reads metrics and plots from the JSON form of TFMA's protos."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.uncertainty import ESTIMATES, SliceEstimates

if TYPE_CHECKING:
    import numpy as np

OVERALL = "overall"
EXAMPLES = "example_count"
PER_CLASS = "examples_per_class"
EFFECTIVE = "effective_example_count"
HISTOGRAM = "prediction_histogram"
MATRIX = "multi_class_confusion_matrix_at_thresholds"


class Metric(NamedTuple):
    """A metric of a slice and a model.

    Attributes:
      slice: its name, such as ``payment_type: Cash``, or ``overall``.
      model: ``candidate``, ``baseline``, or the model's name in another pipeline.
      name: on the page, such as ``precision (class_id 3)``.
      value: its number; None for anything else.
      array: the values of an array.
      text: what there is in place of a number, such as an error.
    """

    slice: str
    model: str
    name: str
    value: float | None
    array: list[float]
    text: str


def read_metrics(document: Mapping[str, Any]) -> Iterator[Metric]:
    """Yields the metrics of a document, all examples first, without differences."""
    for item in document["metrics"]:
        if "cross_slice_key" in item:
            continue
        where = slice_name(item.get("slice_key", {}))
        for found in item.get("metric_keys_and_values", ()):
            key, value = found["key"], found.get("value", {})
            if key.get("is_diff"):
                continue
            array = value.get("array_value", {})
            values = next((v for k, v in array.items() if k.endswith("_values")), ())
            numbers = [] if "bytes_values" in array else [float(x) for x in values]
            name = key.get("name", "")
            if name == ESTIMATES:
                continue
            if "aggregation_type" in key:  # Without the classes, TFMA hides its name.
                name = name.removeprefix("_")
            name = " ".join([name, *filter(None, [_about(key)])])
            yield Metric(
                slice=where,
                model=key.get("model_name") or "candidate",
                name=name,
                value=_number(value),
                array=numbers,
                text=_text(value, len(values)),
            )


def estimates(document: Mapping[str, Any]) -> dict[str, SliceEstimates]:
    """Returns how uncertain the candidate's metrics are, by slice."""
    return {x: SliceEstimates.of(y) for x, y in _encoded_estimates(document)}


def overall_estimates(document: Mapping[str, Any]) -> SliceEstimates:
    """Returns those of all examples, the only ones that are decoded."""
    found = dict(_encoded_estimates(document)).get(OVERALL)
    return SliceEstimates.of(found) if found else SliceEstimates()


def _encoded_estimates(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in document["metrics"]:
        for found in item.get("metric_keys_and_values", ()):
            if found["key"].get("name") == ESTIMATES and found["value"]:
                name = slice_name(item.get("slice_key", {}))
                yield name, found["value"]["bytes_value"]


def effective_examples(document: Mapping[str, Any]) -> dict[str, float]:
    """Returns the effective number of examples by slice; empty without weights."""
    metrics = (item for item in read_metrics(document) if item.name == EFFECTIVE)
    return {item.slice: item.value or 0.0 for item in metrics}


def read_plots(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the model and TFMA's tables by kind, of each plot of a document."""
    for item in document["plots"]:
        for found in item.get("plot_keys_and_values", ()):
            yield found["key"].get("model_name") or "candidate", found.get("value", {})


def confusion_matrices(
    document: Mapping[str, Any], classes: int
) -> dict[str, np.ndarray]:
    """Returns all examples by true and predicted class, by model, the candidate first.

    Of two classes, the second is predicted from the threshold of each model on.
    """
    matrices = {
        model: _from_plot(tables[MATRIX], classes)
        for model, tables in read_plots(document)
        if MATRIX in tables
    }
    if not matrices and classes == 2:  # Of an evaluation that counted none.
        matrices = {
            item.model: _at_half(item.array)
            for item in read_metrics(document)
            if item.name == HISTOGRAM and item.slice == OVERALL
        }
    return dict(sorted(matrices.items(), reverse=True))


def _at_half(histogram: list[float]) -> np.ndarray:
    import numpy as np  # Slow: most verbs read metrics without it.

    counts = np.array(histogram, float).reshape(2, 2, -1)
    return np.asarray(counts.sum(axis=2))


def decision_thresholds(document: Mapping[str, Any]) -> dict[str, float]:
    """Returns the probability from which on the second of two classes is predicted."""
    return {
        model: float(_lowest(tables[MATRIX]).get("threshold", 0))
        for model, tables in read_plots(document)
        if MATRIX in tables
    }


def _lowest(plot: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the matrix at the lowest threshold, the only one of ours."""
    # Without a threshold there is one matrix, of the most probable class.
    matrices: Any = plot.get("matrices") or [{}]
    return min(matrices, key=lambda item: float(item.get("threshold", 0)))


def _from_plot(plot: Mapping[str, Any], size: int) -> np.ndarray:
    """Returns examples by actual and predicted class, at the lowest threshold."""
    import numpy as np

    entries = [
        (
            int(x.get("actual_class_id", 0)),
            int(x.get("predicted_class_id", 0)),
            float(x.get("num_weighted_examples", 0)),
        )
        for x in _lowest(plot).get("entries", ())
    ]
    size = max([size, *(1 + max(pair) for *pair, _ in entries)])
    confusion = np.zeros((size, size))
    for actual, predicted, count in entries:
        if min(actual, predicted) >= 0:  # -1: without a label, or below the threshold.
            confusion[actual, predicted] = count
    return confusion


def slice_name(key: Mapping[str, Any]) -> str:
    """Returns the display name of a slice, such as ``payment_type: Cash``."""
    parts = key.get("single_slice_keys", ())
    return ", ".join(f"{x['column']}: {_slice_value(x)}" for x in parts) or OVERALL


def _slice_value(part: Mapping[str, Any]) -> Any:
    if "bytes_value" in part:
        return base64.b64decode(part["bytes_value"]).decode(errors="replace")
    return part.get("int64_value", part.get("float_value", ""))


def _about(key: Mapping[str, Any]) -> str:
    """Returns of which class, output or average a metric is, in brackets."""
    about = [f"{name} {value}" for name, value in key.get("sub_key", {}).items()]
    about += [key["output_name"]] if key.get("output_name") else []
    about += [name for name, used in key.get("aggregation_type", {}).items() if used]
    return f"({', '.join(about)})" if about else ""


def _number(value: Mapping[str, Any]) -> float | None:
    if "double_value" in value:
        return float(value["double_value"])
    if "bounded_value" in value:
        return float(value["bounded_value"]["value"])
    if "t_distribution_value" in value:
        return float(value["t_distribution_value"]["unsampled_value"])
    return None


def _text(value: Mapping[str, Any], values: int) -> str:
    if values:
        return f"{values:,} values"
    error = value.get("unknown_type", {}).get("error") or value.get("debug_message")
    return error or "not in the record"
