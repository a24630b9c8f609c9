"""Section Training: curves by epoch, speed, and the layers of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis, is_finite
from reports.read_run import RunData
from reports.sections.curves import STYLES
from reports.tables import Header, Table, numbers

_EVAL = "val_"
# Above this ratio of largest to smallest, losses are on a logarithmic scale.
_WIDE = 50.0


def build(run: RunData) -> dict[str, Any] | None:
    """Returns what the template shows; None if nothing was trained."""
    trainings = [
        {
            "node": artifact["node"],
            "count": len(artifact["epochs"]),
            "facts": artifact["training"] or {},
            "speed": _speed_tiles(artifact),
            "charts": curves(artifact),
            "epochs": _epochs(i, artifact),
        }
        for i, artifact in enumerate(run.epochs())
    ]
    layers = {
        document["node"]: (document["training"] or {}).get("layers")
        for document in run.documents("epochs")
    }
    models = [
        (model, _layers(i, found))
        for i, model in enumerate(run.documents("model"))
        if (found := layers.get(model["node"]))
    ]
    return {"trainings": trainings, "models": models} if trainings or models else None


def _speed(artifact: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    facts = artifact["training"] or {}
    return {item["epoch"]: item for item in facts.get("epochs", ())}


def curves(artifact: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric and of the speed.

    Args:
      artifact: of the document ``epochs``; ``training`` may be None.
    """
    metrics, speed = dict(artifact["metrics"]), _speed(artifact)
    chosen = (artifact["training"] or {}).get("chosen_epoch")
    evals = {
        name.removeprefix(_EVAL): metrics.pop(name)
        for name in artifact["metrics"]
        if name.startswith(_EVAL)
    }
    if speed:
        rate = "examples_per_second"
        metrics["examples per second"] = _by_epoch(artifact["epochs"], speed, rate)
    lines = {
        "train": {**artifact, "metrics": metrics},
        "eval": {**artifact, "metrics": evals},
    }
    return overlaid(lines, (chosen, f"chosen: {chosen}") if chosen else None)


def overlaid(
    trainings: Mapping[str, Mapping[str, Any]],
    mark: tuple[float, str] | None = None,
    *,
    has_key: bool = True,
) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric by epoch, with a line per training.

    Args:
      trainings: documents ``epochs`` by the name of their line.
      mark: an epoch, with its label.
      has_key: whether the charts name the lines.
    """
    names = dict.fromkeys(name for x in trainings.values() for name in x["metrics"])
    drawn = []
    for name in sorted(names, key=lambda x: ("loss" not in x, _EVAL not in x)):
        lines = [
            Series(label, item["epochs"], item["metrics"][name], STYLES.get(label, i))
            for i, (label, item) in enumerate(trainings.items())
            if name in item["metrics"]
        ]
        axes = Axis("epoch", whole=True), Axis(log="loss" in name and _is_wide(lines))
        title = f"{name} by epoch"
        chart = line_chart(title, lines, *axes, mark=mark, has_key=has_key)
        drawn.append((name, chart))
    return drawn


def _by_epoch(
    epochs: Sequence[int], speed: Mapping[int, Mapping[str, Any]], key: str
) -> list[Any]:
    return [speed.get(epoch, {}).get(key) for epoch in epochs]


def _is_wide(lines: Sequence[Series]) -> bool:
    values = [float(v or 0) for line in lines for v in line.y if is_finite(v)]
    return bool(values) and min(values) > 0 and max(values) > _WIDE * min(values)


def _speed_tiles(artifact: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Returns name, value and remark of the time and the speed of a training."""
    first_step_s = (artifact["training"] or {}).get("time_to_first_step_s")
    timed = [x for x in _speed(artifact).values() if is_finite(x["duration_s"])]
    rates = [x["examples_per_second"] for x in timed]
    rates, spent = [*filter(is_finite, rates)], sum(x["duration_s"] for x in timed)
    if not rates or not is_finite(spent):
        return []
    first = min(first_step_s, spent) if is_finite(first_step_s) else 0.0
    remark = f"{formats.seconds(first)} until the first step"
    tiles = [("Time in epochs", formats.seconds(spent), remark)]
    tiles.append(("Examples per second", _rounded(median(rates)), "median epoch"))
    return tiles


def _epochs(index: int, artifact: Mapping[str, Any]) -> Table:
    epochs, metrics, speed = artifact["epochs"], artifact["metrics"], _speed(artifact)
    columns = [numbers("Epoch"), *(numbers(name) for name in metrics)]
    values = [epochs, *metrics.values()]
    if speed:
        columns.append(numbers("Duration in s"))
        columns.append(numbers("Examples per second", _rounded))
        for key in ("duration_s", "examples_per_second"):
            values.append(_by_epoch(epochs, speed, key))
    rows = list(zip(*values, strict=True))
    return Table(f"epochs-{index}", "Numbers by epoch", columns, rows)


def _rounded(value: float | str | None) -> str:
    return f"{value:,.0f}" if is_finite(value) else formats.number(value)


def _layers(index: int, layers: Sequence[Mapping[str, Any]]) -> Table:
    header: Header = ["Layer", "Class", "Output shape"]
    header += [numbers("Parameters", bar=True), numbers("Trainable")]
    rows = []
    for item in layers:
        trainable = item.get("trainable_parameters")
        if trainable is None:  # A variable, of a model without layers.
            trainable = item["parameters"] * item["trainable"]
        shape = formats.shape(item["output_shape"])
        rows.append((item["name"], item["class"], shape, item["parameters"], trainable))
    return Table(f"model-{index}", "Layers", header, rows)
