"""Config of the learning rate: a number, or a schedule with a warm-up."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from sluice.config_section import (
    Flag,
    Fraction,
    NotEmpty,
    NotNegative,
    Number,
    PositiveNumber,
    Section,
)

_KIND = "How the learning rate changes."
# The kind of a schedule that names none.
DEFAULT_SCHEDULE = "constant"


class _Schedule(Section):
    initial: PositiveNumber = Field(
        default=0.001, description="Learning rate, after the warm-up."
    )
    warmup_epochs: NotNegative = Field(
        default=0.0,
        description="Epochs, or parts of one, over which the learning rate rises from "
        "0 in a straight line; the schedule begins after them.",
    )


class Constant(_Schedule):
    """The same learning rate throughout, as with a number, but with a warm-up."""

    kind: Literal["constant"] = Field(default="constant", description=_KIND)


class Cosine(_Schedule):
    """From `initial` down to `final_fraction` of it along half a cosine."""

    kind: Literal["cosine"] = Field(default="cosine", description=_KIND)
    epochs: PositiveNumber | None = Field(
        default=None, description="Epochs of the descent. null: to the last epoch."
    )
    final_fraction: Fraction = Field(
        default=0.0, description="The last learning rate, as a fraction of `initial`."
    )


class Exponential(_Schedule):
    """Multiplied by `rate` every `epochs`."""

    kind: Literal["exponential"] = Field(default="exponential", description=_KIND)
    rate: Annotated[Number, Field(gt=0, le=1)] = Field(
        default=0.9, description="Factor of the learning rate every `epochs`."
    )
    epochs: PositiveNumber = Field(
        default=1.0, description="Epochs over which it is multiplied by `rate` once."
    )
    staircase: Flag = Field(
        default=False, description="Whether it changes in steps, every `epochs`."
    )


class Piecewise(_Schedule):
    """`initial` until the first boundary, then one value after each."""

    kind: Literal["piecewise"] = Field(default="piecewise", description=_KIND)
    boundaries: NotEmpty[tuple[PositiveNumber, ...]] = Field(
        description="Epochs, after the warm-up, at which the learning rate changes; "
        "ascending."
    )
    values: NotEmpty[tuple[PositiveNumber, ...]] = Field(
        description="The learning rate after each boundary."
    )


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
