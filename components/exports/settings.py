"""An export as the config has it, with its limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from sluice.config_section import Fraction, NotNegative, Section, refuse, shorthand

# The default limits: the largest difference, of predictions beyond 1 as a share of the
# largest, and the least agreement. Integers move probabilities more than classes.
_LIMITS: dict[str, tuple[float | None, float]] = {
    "none": (1e-4, 0.99),
    "float16": (0.01, 0.99),
    "dynamic": (None, 0.98),
    "int8": (None, 0.95),
}


class Export(Section):
    """A format that the model is exported to. `tflite` is short for `{format: tflite}`.

    The export must predict what the SavedModel predicts, on examples of the eval split.
    """

    format: Literal["tflite", "tfjs", "keras"]
    """`tflite`: a TFLite file; `tfjs`: a TF.js layers model; `keras`: a `.keras`
    file."""
    quantize: Literal["none", "dynamic", "float16", "int8"] = "none"
    """How TFLite stores weights: `none`, as float32; `dynamic`, as 8-bit integers;
    `float16`; `int8`, and computes in 8-bit integers too, whose ranges it takes from
    examples of the train split."""
    max_difference: NotNegative | None = None
    """Largest difference of a prediction, absolute: of probabilities, or in the unit of
    a regression's target. null: 0.0001, for float16 0.01, times the largest prediction
    if that is beyond 1; no limit for dynamic and int8."""
    min_agreement: Fraction | None = None
    """Least share of examples for which the same class is predicted; not for a
    regression. null: 0.99, for dynamic 0.98, for int8 0.95."""

    @model_validator(mode="after")
    def _is_quantized_for_tflite(self) -> Export:
        if self.quantize != "none" and self.format != "tflite":
            refuse(f"only tflite is quantized, not {self.format}", "quantize")
        return self

    @property
    def name(self) -> str:
        """The name of its folder, such as ``tflite-int8``."""
        variant = "" if self.quantize == "none" else f"-{self.quantize}"
        return self.format + variant

    def difference_limit(self, largest: float) -> float | None:
        """Returns the limit of the difference, where predictions go up to a number."""
        share = _LIMITS[self.quantize][0]
        if self.max_difference is not None or share is None:
            return self.max_difference
        return share * max(1.0, largest)

    @property
    def agreement_limit(self) -> float:
        """The least agreement of classes."""
        least = self.min_agreement
        return _LIMITS[self.quantize][1] if least is None else least


ExportSpec = Annotated[Export, shorthand("format", Export)]
