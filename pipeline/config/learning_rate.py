"""Config of the learning rate: a number, or a schedule with a warm-up."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from sluice.config_section import (
    Flag,
    Fraction,
    NotEmpty,
    NotNegative,
    Number,
    PositiveNumber,
    Section,
    refuse,
)

# The kind of a schedule that names none.
DEFAULT_SCHEDULE = "constant"


class _Schedule(Section):
    kind: str
    """How the learning rate changes."""
    initial: PositiveNumber = 0.001
    """Learning rate, after the warm-up."""
    warmup_epochs: NotNegative = 0.0
    """Epochs, or parts of one, over which the learning rate rises from 0 in a straight
    line; the schedule begins after them."""


class Constant(_Schedule):
    """The same learning rate throughout, as with a number, but with a warm-up."""

    kind: Literal["constant"] = "constant"
    """How the learning rate changes."""


class Cosine(_Schedule):
    """From `initial` down to `final_fraction` of it along half a cosine."""

    kind: Literal["cosine"] = "cosine"
    """How the learning rate changes."""
    epochs: PositiveNumber | None = None
    """Epochs of the descent. null: to the last epoch."""
    final_fraction: Fraction = 0.0
    """The last learning rate, as a fraction of `initial`."""


class Exponential(_Schedule):
    """Multiplied by `rate` every `epochs`."""

    kind: Literal["exponential"] = "exponential"
    """How the learning rate changes."""
    rate: Annotated[Number, Field(gt=0, le=1)] = 0.9
    """Factor of the learning rate every `epochs`."""
    epochs: PositiveNumber = 1.0
    """Epochs over which it is multiplied by `rate` once."""
    staircase: Flag = False
    """Whether it changes in steps, every `epochs`."""


class Piecewise(_Schedule):
    """`initial` until the first boundary, then one value after each."""

    kind: Literal["piecewise"] = "piecewise"
    """How the learning rate changes."""
    boundaries: NotEmpty[tuple[PositiveNumber, ...]]
    """Epochs, after the warm-up, at which the learning rate changes; ascending."""
    values: NotEmpty[tuple[PositiveNumber, ...]]
    """The learning rate after each boundary."""

    @model_validator(mode="after")
    def _fit_together(self) -> Piecewise:
        if any(after <= before for before, after in pairwise(self.boundaries)):
            refuse("the boundaries are not in ascending order", "boundaries")
        if len(self.boundaries) != len(self.values):
            refuse(
                f"there are {len(self.boundaries)} boundaries, so {len(self.values)} "
                "values are wrong: each boundary needs one",
                "values",
            )
        return self


def _schedule_kind(value: Any) -> str:
    if isinstance(value, dict):
        return value.get("kind", DEFAULT_SCHEDULE)
    return getattr(value, "kind", "number")


LearningRate = Annotated[
    Annotated[PositiveNumber, Tag("number")]
    | Annotated[Constant, Tag("constant")]
    | Annotated[Cosine, Tag("cosine")]
    | Annotated[Exponential, Tag("exponential")]
    | Annotated[Piecewise, Tag("piecewise")],
    Discriminator(_schedule_kind),
]
