"""Section Training: curves by epoch, speed, and the layers of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Mark as AxisMark
from reports.charts.lines import Series, line_chart
from reports.charts.scale import Axis
from reports.charts.svg import is_finite
from reports.read_run import RunData
from reports.tables import Header, Table, numbers

_EVAL = "val_"
_RATES = ("learning_rate", "lr")
# Above this ratio of largest to smallest, losses are on a logarithmic scale.
_WIDE = 50.0


@dataclass(frozen=True)
class Training:
    """One training.

    Attributes:
      strategy: on what, in one line; empty if unknown.
      tiles: name, value and remark of the most important numbers.
      charts: title and chart of each metric, learning rate and speed.
    """

    node: str
    strategy: str
    tiles: list[tuple[str, str, str]]
    charts: list[tuple[str, Markup]]
    epochs: Table


@dataclass(frozen=True)
class ModelSummary:
    """The layers of a model."""

    node: str
    table: Table
    total: str


@dataclass(frozen=True)
class TrainingView:
    """What the section shows."""

    trainings: list[Training]
    models: list[ModelSummary]


def build(run: RunData) -> TrainingView | None:
    """Returns the view; None if nothing was trained."""
    trainings = [_training(i, artifact) for i, artifact in enumerate(run.epochs())]
    layers = {
        document["node"]: (document["training"] or {}).get("layers")
        for document in run.documents("epochs")
    }
    found = (
        _summary(i, item, layers.get(item["node"]))
        for i, item in enumerate(run.documents("model"))
    )
    models = [summary for summary in found if summary is not None]
    return TrainingView(trainings, models) if trainings or models else None


def _training(index: int, artifact: dict[str, Any]) -> Training:
    facts = artifact["training"] or {}
    speed = {item["epoch"]: item for item in facts.get("epochs", [])}
    return Training(
        node=artifact["node"],
        strategy=facts.get("strategy") or "",
        tiles=_tiles(artifact, facts, speed),
        charts=curves(artifact),
        epochs=_epochs(index, artifact, speed),
    )


def curves(artifact: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric, of the learning rate and of the speed.

    Args:
      artifact: of the document ``epochs``; ``training`` may be None.
    """
    epochs, metrics = artifact["epochs"], artifact["metrics"]
    facts = artifact["training"] or {}
    chosen = facts.get("chosen_epoch")
    mark = AxisMark(chosen, f"chosen: {chosen}") if chosen else None
    axis = Axis("epoch", whole=True)
    charts = []
    for name in _names(metrics):
        lines = [
            Series(label, epochs, metrics[key], style)
            for label, key, style in (("train", name, 0), ("eval", _EVAL + name, 1))
            if key in metrics
        ]
        y_axis = Axis(log="loss" in name and _is_wide(lines))
        chart = line_chart(f"{name} by epoch", lines, axis, y_axis, mark=mark)
        charts.append((name, chart))
    speed = {item["epoch"]: item for item in facts.get("epochs", [])}

    def by_epoch(key: str) -> list[Any]:
        return [(speed.get(epoch) or {}).get(key) for epoch in epochs]

    rate: list[Any] = next((metrics[key] for key in _RATES if key in metrics), [])
    for label, values, y_axis in (
        ("learning rate", rate, Axis()),
        ("examples per second", by_epoch("examples_per_second"), Axis(low=0.0)),
        ("waiting for input", by_epoch("input_bound"), Axis(low=0.0, percent=True)),
    ):
        if any(is_finite(value) for value in values):
            line = Series(label, epochs, values)
            chart = line_chart(f"{label} by epoch", [line], axis, y_axis, mark=mark)
            charts.append((label, chart))
    return charts


def _names(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the metrics without the prefix of the eval data, the loss first."""
    names = dict.fromkeys(name.removeprefix(_EVAL) for name in metrics)
    return sorted((n for n in names if n not in _RATES), key=lambda n: n != "loss")


def _is_wide(lines: Sequence[Series]) -> bool:
    values = [float(v or 0) for line in lines for v in line.y if is_finite(v)]
    return bool(values) and min(values) > 0 and max(values) > _WIDE * min(values)


def _tiles(
    artifact: dict[str, Any], facts: dict[str, Any], speed: dict[int, dict[str, Any]]
) -> list[tuple[str, str, str]]:
    epochs = len(artifact["epochs"])
    chosen = facts.get("chosen_epoch")
    remark = f"weights of epoch {chosen:,}" if chosen else ""
    tiles = [("Epochs", formats.number(epochs), remark)]
    timed = [item for item in speed.values() if is_finite(item["duration_s"])]
    spent = sum(item["duration_s"] for item in timed)
    rates = list(filter(is_finite, (item["examples_per_second"] for item in timed)))
    if rates and is_finite(spent):
        waited = [
            (item["input_bound"] * item["duration_s"], item["duration_s"])
            for item in timed
            if is_finite(item["input_bound"])
        ]
        first = facts.get("time_to_first_step_s")
        first = min(first, spent) if is_finite(first) else 0.0
        remark = f"{formats.seconds(first)} until the first step"
        tiles.append(("Time in epochs", formats.seconds(spent), remark))
        tiles.append(("Examples per second", _rounded(median(rates)), "median epoch"))
        if waited:
            trained = max(sum(b for _, b in waited) - first, 0.001)
            share = min(sum(a for a, _ in waited) / trained, 1.0)
            remark = "of the time after the first step"
            tiles.append(("Waiting for input", formats.percent(share), remark))
    if facts.get("batch_size"):
        of = formats.plural(facts["replicas"], "replica")
        remark = f"{of}, {facts['precision']}"
        tiles.append(("Batch size", formats.number(facts["batch_size"]), remark))
    if facts.get("trainable_parameters") is not None:
        frozen = facts["non_trainable_parameters"]
        trainable = formats.number(facts["trainable_parameters"])
        remark = f"and {frozen:,} non-trainable"
        tiles.append(("Trainable parameters", trainable, remark if frozen else ""))
    if facts.get("device_memory_peak_bytes"):
        memory = formats.size(facts["device_memory_peak_bytes"])
        tiles.append(("Device memory", memory, "peak"))
    return tiles


def _epochs(
    index: int, artifact: dict[str, Any], speed: dict[int, dict[str, Any]]
) -> Table:
    metrics = artifact["metrics"]
    columns = [numbers("Epoch"), *(numbers(name) for name in metrics)]
    facts = (
        ("duration_s", numbers("Duration", "s")),
        ("examples_per_second", numbers("Examples per second", "", _rounded)),
        ("input_bound", numbers("Waiting for input", "%", formats.in_percent)),
    )
    columns += [column for _, column in facts] if speed else []
    rows = []
    for i, epoch in enumerate(artifact["epochs"]):
        row = [epoch, *(values[i] for values in metrics.values())]
        if speed:
            row += [(speed.get(epoch) or {}).get(key) for key, _ in facts]
        rows.append(row)
    return Table(f"epochs-{index}", "Numbers by epoch", columns, rows)


def _rounded(value: float | str | None) -> str:
    return f"{value:,.0f}" if is_finite(value) else formats.number(value)


def _summary(
    index: int, artifact: dict[str, Any], layers: list[dict[str, Any]] | None
) -> ModelSummary | None:
    if not layers:
        return None
    rows = [
        [
            *(item["name"], item["class"], _shape(item["output_shape"])),
            *(item["parameters"], _trainable(item)),
        ]
        for item in layers
    ]
    columns: Header = ["Layer", "Class", "Output shape"]
    columns += [numbers("Parameters", bar=True), "Trainable"]
    trainable = artifact["trainable_parameters"]
    frozen = artifact["parameters"] - trainable
    total = f"{artifact['parameters']:,} parameters: {trainable:,} trainable, "
    size = formats.size(artifact["size_bytes"])
    return ModelSummary(
        node=artifact["node"],
        table=Table(f"model-{index}", "Layers", columns, rows),
        total=f"{total}{frozen:,} non-trainable, {size}.",
    )


def _shape(sizes: Sequence[int | None] | None) -> str | None:
    if sizes is None:
        return None
    texts = ["any" if size in (None, -1) else str(size) for size in sizes]
    return " x ".join(texts) or "scalar"


def _trainable(item: Mapping[str, Any]) -> str | None:
    """Returns whether a variable, or how much of a layer, is trained."""
    if "trainable" in item:
        return "yes" if item["trainable"] else "no"
    parameters, trainable = item["parameters"], item["trainable_parameters"]
    if not parameters:
        return None
    if trainable == parameters:
        return "yes"
    return f"{trainable:,} of {parameters:,}" if trainable else "no"
