"""Config section ``model_params``: parameters of the bundled models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sluice.config_section import Count, Fraction, ProjectPath, Section

_Dropout = Annotated[Fraction, Field(lt=1)]


class DenseParams(Section):
    """``model_params`` of ``dense`` and ``wide_deep``."""

    hidden_units: tuple[Count, ...] = (128, 64)
    """Units of each hidden layer."""
    dropout: _Dropout = 0.1
    """Fraction dropped after each hidden layer."""


class CnnParams(Section):
    """``model_params`` of ``cnn``."""

    filters: tuple[Count, ...] = (32, 64)
    """Filters of each block of two convolutions and a pooling."""
    dense_units: Count = 128
    """Units of the dense layer after the blocks."""
    dropout: _Dropout = 0.3
    """Fraction dropped before the output layer."""


class ApplicationParams(Section):
    """``model_params`` of a model of ``tf.keras.applications``."""

    weights: ProjectPath | None = None
    """A `.h5` file of weights as Keras publishes them without the top,
    relative to the project root. null: random weights."""
    pooling: Literal["avg", "max"] | None = "avg"
    """Global pooling of the last feature map. null: it is flattened."""
    head: tuple[Count, ...] = ()
    """Units of dense layers between pooling and output."""
    dropout: _Dropout = 0.0
    """Fraction dropped before the output layer."""
