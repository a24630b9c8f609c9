"""Linear and logarithmic scales with round ticks.

The steps are those of Heckbert, "Nice Numbers for Graph Labels", Graphics Gems (1990):
1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from reports.charts.svg import is_finite

# Values beyond are drawn at it: the difference of two floats has to stay finite.
_LARGEST = 1e300
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Axis:
    """What an axis shows.

    Attributes:
      label: the quantity, with its unit.
      low: where it begins; None for the smallest value, rounded down.
      high: where it ends, likewise.
      log: whether it is logarithmic; without any positive value it is not.
      whole: whether all ticks are whole numbers, such as epochs.
      percent: whether values are fractions, shown in percent.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False
    percent: bool = False


@dataclass(frozen=True)
class Scale:
    """A mapping from values to coordinates.

    Attributes:
      low: the value at the coordinate ``start``.
      high: the value at ``end``, which is less than ``start`` on a vertical axis.
      ticks: value and label of each tick, in order.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float) -> float:
        """Returns the coordinate of a value; values outside are at the ends."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log10(item) for item in (low, high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def make_scale(
    axis: Axis, values: Iterable[float], start: float, end: float, *, ticks: int = 5
) -> Scale:
    """Returns a scale from the coordinate ``start`` of the lowest value to ``end``.

    NaN and infinities do not count; without any value it goes from 0 to 1. About
    ``ticks`` ticks are drawn.
    """
    kept = [clamp(value) for value in values if is_finite(value)]
    if axis.log and (positive := [value for value in kept if value >= _SMALLEST]):
        return _log_scale(axis, positive, start, end, ticks)
    low = clamp(min(kept, default=0.0) if axis.low is None else axis.low)
    top = max(kept, default=max(low, 1.0))
    high = clamp(top if axis.high is None else axis.high)
    if not high - low > max(abs(low), abs(high), _SMALLEST) * 1e-9:
        pad = max(abs(low) * 0.1, _SMALLEST) if low else 1.0
        low = low if axis.low is not None else low - (pad if low else 0.0)
        high = max(low + pad, high + pad)
    step = _step((high - low) / max(ticks - 1, 1))
    if axis.whole:
        step = max(step, 1.0)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    if not axis.whole:
        if axis.low is None and first * step > low:
            first -= 1
            low = first * step
        if axis.high is None and last * step < high:
            last += 1
            high = last * step
    places = [i * step for i in range(first, last + 1)]
    labels = tick_labels(places, step, percent=axis.percent)
    return Scale(low, high, start, end, False, tuple(zip(places, labels, strict=True)))


def clamp(value: float) -> float:
    """Returns a number so close to zero that differences of such are finite."""
    return min(max(value, -_LARGEST), _LARGEST)


def _log_scale(
    axis: Axis, values: list[float], start: float, end: float, ticks: int
) -> Scale:
    first = math.floor(math.log10(min(values)) + 1e-9)
    last = math.ceil(math.log10(max(values)) - 1e-9)
    last = max(last, first + 1)
    every = max(1, math.ceil((last - first) / ticks))
    places = [10.0**i for i in range(first, last + 1, every)]
    labels = [tick_labels([v], v, percent=axis.percent)[0] for v in places]
    low, high = 10.0**first, 10.0**last
    return Scale(low, high, start, end, True, tuple(zip(places, labels, strict=True)))


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(
        factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough
    )


def tick_labels(places: list[float], step: float, *, percent: bool) -> list[str]:
    """Returns the labels of ticks, all with as many decimals as the step needs."""
    if percent:
        places, step = [value * 100 for value in places], step * 100
    largest = max(map(abs, places), default=0.0)
    if largest >= 1e6 or (largest and step < 1e-4):
        orders = [math.floor(math.log10(value)) for value in (largest, step)]
        digits = min(max(orders[0] - orders[1], 0), 5)
        labels = [_scientific(value, digits) for value in places]
    else:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        labels = [f"{value + 0.0:,.{decimals}f}" for value in places]
    return [f"{label} %" for label in labels] if percent else labels


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    if not float(mantissa):
        return "0"
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"
