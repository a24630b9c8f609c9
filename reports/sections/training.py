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
from reports.tables import Header, Mark, Table, numbers

_EVAL = "val_"
_DURATION = "Duration in s"
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
    view = {"searches": _searches(run), "trainings": trainings, "models": models}
    return view if any(view.values()) else None


def _speed(artifact: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Returns duration and speed of each epoch; empty if none is known."""
    known = {x["epoch"]: x for x in (artifact["training"] or {}).get("epochs", ())}
    keys = {_DURATION: "duration_s", "Examples per second": "examples_per_second"}
    return {
        label: [known.get(epoch, {}).get(key) for epoch in artifact["epochs"]]
        for label, key in keys.items()
        if known
    }


def curves(artifact: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric and of the speed.

    Args:
      artifact: of the document ``epochs``; ``training`` may be None.
    """
    metrics = {**artifact["metrics"], **_speed(artifact)}
    metrics.pop(_DURATION, None)
    chosen = (artifact["training"] or {}).get("chosen_epoch")
    evals = {
        name.removeprefix(_EVAL): metrics.pop(name)
        for name in artifact["metrics"]
        if name.startswith(_EVAL)
    }
    lines = {
        "train": {**artifact, "metrics": metrics},
        "eval": {**artifact, "metrics": evals},
    }
    return overlaid(lines, (chosen, f"chosen: {chosen}") if chosen else None)


def overlaid(
    trainings: Mapping[str, Mapping[str, Any]],
    mark: tuple[float, str] | None = None,
) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric by epoch, with a line per training.

    Args:
      trainings: documents ``epochs`` by the name of their line.
      mark: an epoch, with its label.
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
        chart = line_chart(title, lines, *axes, mark=mark)
        drawn.append((name, chart))
    return drawn


def _is_wide(lines: Sequence[Series]) -> bool:
    values = [float(v or 0) for line in lines for v in line.y if is_finite(v)]
    return bool(values) and min(values) > 0 and max(values) > _WIDE * min(values)


def _speed_tiles(artifact: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Returns name, value and remark of the time and the speed of a training."""
    durations, rates = (
        list(filter(is_finite, x)) for x in _speed(artifact).values() or ((), ())
    )
    spent_s = sum(durations)
    if not rates or not is_finite(spent_s):
        return []
    first_step_s = (artifact["training"] or {}).get("time_to_first_step_s")
    first_step_s = first_step_s if is_finite(first_step_s) else None
    remark = f"{formats.seconds(first_step_s)} until the first step"
    return [
        ("Time in epochs", formats.seconds(spent_s), remark),
        ("Examples per second", formats.number(median(rates)), "median epoch"),
    ]


def _epochs(index: int, artifact: Mapping[str, Any]) -> Table:
    values = {"Epoch": artifact["epochs"], **artifact["metrics"], **_speed(artifact)}
    rows = list(zip(*values.values(), strict=True))
    return Table(f"epochs-{index}", "Numbers by epoch", [*map(numbers, values)], rows)


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


def _searches(run: RunData) -> list[dict[str, Any]]:
    """Returns what the template shows of each search."""
    return [
        {
            **found,
            "seconds": sum(
                filter(is_finite, (trial["duration_s"] for trial in found["trials"]))
            ),
            "table": _trials_table(found, f"trials-{i}"),
        }
        for i, found in enumerate(run.documents("trials"))
    ]


def _trials_table(search: Mapping[str, Any], id: str) -> Table:
    header: Header = [numbers("Trial"), numbers(search["objective"])]
    header += [key.partition(".")[2] for key in search["space"]]
    header += [numbers("Epochs"), numbers("Time", formats.seconds), "Result"]
    rows, result = [], Mark("good", "best")
    for trial in search["trials"]:
        if trial["objective"] is None:
            result = Mark("bad", trial["error"] or trial["status"])
        values = [formats.setting(trial["values"][key]) for key in search["space"]]
        row = [trial["number"], trial["objective"], *values]
        rows.append([*row, trial["epochs"], trial["duration_s"], result])
        result = Mark("quiet", "")
    return Table(id, "Trials", header, rows)
