"""Config section ``label``: what is predicted.

Transformed features carry the suffix ``_xf``, as in TFX's examples, because TFMA sees
raw and transformed features side by side.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Gt, Lt
from pydantic import AfterValidator, StrictInt, StrictStr, model_validator

from sluice.config_section import (
    ClassList,
    Fraction,
    Number,
    Section,
    Text,
    expect,
)
from sluice.metrics import THRESHOLD


def transformed_name(name: str) -> str:
    """Returns the name that a raw feature has after preprocessing."""
    return f"{name}_xf"


Task = Literal["classification", "multi_label", "regression"]
Share = Annotated[Fraction, Gt(0)]


class ThresholdRule(Section):
    """How the Trainer chooses the threshold on the eval split: one of these keys.

    It lies between two probabilities of that split, and the examples are weighted by
    `train.sample_weight`. Without a positive example it is 0.5.
    """

    maximize: Literal["f1"] | None = None
    """`f1`: the largest F1 of the positive class; of several, that of the highest
    threshold."""
    recall_at_least: Share | None = None
    """The highest threshold whose recall is not less."""
    precision_at_least: Share | None = None
    """The lowest threshold whose precision is not less; if none has it, the one with
    the highest precision."""

    @model_validator(mode="after")
    def _has_one_key(self) -> ThresholdRule:
        if sum(value is not None for _, value in self) != 1:
            expect("one of maximize, recall_at_least and precision_at_least")
        return self


# In place of a target's name in the config of a metric.
ALL_TARGETS = "all"


def _targets(names: tuple[str, ...]) -> tuple[str, ...]:
    if len({*names}) < max(2, len(names)) or ALL_TARGETS in names:
        expect(f"at least two names, each once and none of them {ALL_TARGETS!r}")
    return names


Targets = Annotated[tuple[Text, ...], AfterValidator(_targets)]


class Label(Section):
    """What is predicted."""

    feature: Text
    """The label's name in the schema."""
    task: Task = "classification"
    """`classification`: one class per record, as a value or one-hot; `multi_label`: any
    number of classes per record, as a list or as 0 and 1 for each; `regression`: one
    number per record, or several."""
    classes: ClassList = None
    """The label's values in the order of the model's outputs. No others are allowed:
    list codes with gaps, and whole numbers stored as floats. null: the values of its
    domain in the schema, or the places of a list of fixed length."""
    positive: StrictInt | StrictStr | None = None
    """Of two classes, the one that is looked for: recall, precision, probabilities and
    the threshold are its. null: the second of `classes`."""
    threshold: Annotated[Number, Gt(0), Lt(1)] | ThresholdRule = THRESHOLD
    """Of two classes, the probability from which on the positive one is predicted
    (inclusive): by the served model, in the metrics of `evaluate` that count
    predictions and have no threshold of their own, on the page, and in exports. A
    number, or how to choose it, such as `{recall_at_least: 0.9}`. Another one trains
    again."""
    targets: Targets | None = None
    """Names of the values of a regression with several per record, in their order, such
    as `[price, days]`. null: there is one value."""

    @property
    def key(self) -> str:
        """The name after preprocessing; see ``preprocessing.label_values``."""
        return transformed_name(self.feature)

    @property
    def prediction_key(self) -> str:
        """The name of the model's output in the signatures."""
        return "prediction" if self.task == "regression" else "probabilities"

    @property
    def class_names(self) -> list[str]:
        """The classes as text, in the order of their ids."""
        return [str(value) for value in self.classes or ()]
