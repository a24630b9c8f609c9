"""Config section ``evaluate``: metrics, slices and thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from components.model_verdict.settings import EXAMPLES_PER_CLASS, Threshold
from pipeline.config.label import ALL_TARGETS
from sluice.config_section import (
    NotEmpty,
    Params,
    Section,
    Text,
    refuse,
    shorthand,
)
from sluice.errors import did_you_mean
from sluice.metrics import MEASURES_A_MODEL, SHARES, direction_of, result_name


class Metric(Section):
    """A metric that TFMA computes. `AUC` is short for `{class: AUC}`."""

    class_name: Annotated[Text, Field(alias="class")]
    """A class of TFMA or of `tf_keras.metrics`; `RelativeError`, the sum of absolute
    errors divided by that of the absolute labels; or a Keras metric of your own,
    `package.module:Class`, whose weights must be sums."""
    name: Text | None = None
    """Name of the result. null: the class's own name."""
    params: Params = {}
    """Arguments of the class; with `class_id: 2` it is of the third class alone. Of
    more than two classes, precision, recall and the like of one class, or averaged, are
    of the predicted class, the likeliest; with `thresholds: 0.5`, of answers above
    0.5."""
    target: Text | None = None
    """One of `label.targets`, whose metric it is, then named `TARGET_NAME` if `name` is
    null; `all`: the mean over all targets, which suits those of one unit. null: of a
    label of one value."""
    average: Literal["macro"] | None = None
    """`macro`: the mean of the metric of each class against all others. null: of
    several labels, the answers for all classes are pooled."""

    @model_validator(mode="before")
    @classmethod
    def _with_name(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("class"), str):
            target = given.get("target")
            of = "" if target in (None, ALL_TARGETS) else f"{target}_"
            named = {"name": of + result_name(given["class"])}
            return {**given, **(named if given.get("name") is None else {})}
        return given

    @model_validator(mode="after")
    def _is_named_once(self) -> Metric:
        if "name" in self.params:
            refuse("a metric's name stands beside its params", "params", "name")
        return self


MetricSpec = Annotated[Metric, shorthand("class", Metric)]


class Evaluate(Section):
    """What is measured, on which slices, and what gates the push."""

    metrics: NotEmpty[tuple[MetricSpec, ...]]
    """The metrics; at least one."""
    slices: tuple[NotEmpty[tuple[Text, ...]], ...] = ()
    """Each a list of features, whose values are crossed; all examples together are
    always measured."""
    thresholds: tuple[Threshold, ...] = ()
    """Thresholds that must all be met before the model is pushed."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Evaluate:
        names = [EXAMPLES_PER_CLASS, *(metric.name for metric in self.metrics)]
        for index, name in enumerate(names):
            if name in names[:index]:
                taken = f"there is a metric {name!r} already: give this one a 'name'"
                refuse(taken, "metrics", index - 1)
        return self

    @model_validator(mode="after")
    def _thresholds_can_be_met(self) -> Evaluate:
        self.check(self.thresholds, "thresholds")
        return self

    def check_targets(self, targets: Iterable[str] | None) -> None:
        """Refuses metrics of none of the label's targets, or of which is not said."""
        known = [*targets, ALL_TARGETS] if targets else []
        for index, metric in enumerate(self.metrics):
            kind, path = result_name(metric.class_name), ("metrics", index)
            if metric.target and metric.target not in known:
                hint = did_you_mean(metric.target, known) or ""
                what = f"label.targets has no {metric.target!r}; {hint}"
                refuse(what.rstrip("; "), "evaluate", *path, "target")
            is_one = metric.target and metric.target != ALL_TARGETS
            if known and kind == "r2_score" and not is_one:
                refuse(f"{kind} is of one target: {known[0]!r}", "evaluate", *path)
            is_count = kind in ("example_count", "weighted_example_count")
            if known and not (metric.target or is_count):
                what = f"one {metric.name!r} of all targets is that of the largest"
                refuse(
                    f"{what}: name a target, such as {known[0]!r}", "evaluate", *path
                )

    def check(self, thresholds: Iterable[Threshold], *where: str) -> None:
        """Refuses thresholds that do not fit these metrics and slices.

        Args:
          thresholds: of any section.
          *where: its keys.
        """
        metrics = {str(metric.name): metric for metric in self.metrics}
        limits = []
        for index, threshold in enumerate(thresholds):
            path: tuple[str | int, ...] = (*where, index)
            metric = metrics.get(threshold.metric)
            if metric is None:
                hint = did_you_mean(threshold.metric, metrics) or ""
                what = f"no metric of this config is called {threshold.metric!r}"
                refuse(f"{what}; {hint}".rstrip("; "), *path, "metric")
            if threshold.slice and {*threshold.slice} not in map(set, self.slices):
                sliced = ", ".join(threshold.slice)
                hint = did_you_mean(sliced, map(", ".join, self.slices)) or ""
                what = f"{sliced} is not in evaluate.slices; {hint}".rstrip("; ")
                refuse(what, *path, "slice")
            _check_limits(threshold, metric, *path)
            for key in ("lower_bound", "upper_bound", "better_than", "change"):
                if getattr(threshold, key) is not None:
                    limit = (threshold.metric, repr(threshold.slice), key)
                    if limit in limits:
                        refuse(f"there is another limit of the same {key}", *path, key)
                    limits.append(limit)


def _check_limits(threshold: Threshold, metric: Metric, *path: str | int) -> None:
    """Refuses limits in percent, and those that a worse model meets."""
    kind = result_name(metric.class_name)
    if threshold.better_than and not (metric.average or kind in MEASURES_A_MODEL):
        what = f"a constant prediction may be the best for {metric.name!r} alone"
        refuse(f"{what}: name an AUC, accuracy, loss or error", *path, "better_than")
    low, change = threshold.lower_bound, threshold.change
    if kind in SHARES and low is not None and low > 1:
        refuse(f"{metric.name!r} never exceeds 1", *path, "lower_bound")
    wrong = {"max": "lower_is_better", "min": "higher_is_better"}
    if change and change.direction == wrong.get(direction_of(kind) or ""):
        opposite = "higher" if direction_of(kind) == "max" else "lower"
        what = f"a {opposite} {metric.name!r} is better"
        refuse(what, *path, "change", "direction")
    if kind in SHARES and change and abs(change.absolute or 0) > 1:
        refuse(f"{metric.name!r} cannot change by more than 1", *path, "change")
