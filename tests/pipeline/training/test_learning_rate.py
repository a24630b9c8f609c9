"""Learning rates by step, of schedules that count in epochs, compared with formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pipeline.config.learning_rate import Constant, Cosine, Exponential, Piecewise

pytestmark = pytest.mark.tf

STEPS = 10
EPOCHS = 8


def rates(schedule: Any, scale: float = 1.0) -> np.ndarray:
    from pipeline.training.compile import make_learning_rate

    rate = make_learning_rate(
        schedule, epochs=EPOCHS, steps_per_epoch=STEPS, scale=scale
    )
    steps = range(EPOCHS * STEPS)
    return np.array([rate if isinstance(rate, float) else rate(x) for x in steps])


def half_cosine(share: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * share))


@pytest.mark.parametrize(
    ("schedule", "warmup", "after"),
    [
        (0.3, 0, lambda step: 0.3),
        (Constant(initial=0.3, warmup_epochs=1.5), 15, lambda step: 0.3),
        (
            Cosine(initial=0.3, warmup_epochs=2, final_fraction=0.1),
            20,
            lambda step: 0.3 * (0.9 * half_cosine(step / 60) + 0.1),
        ),
        (Cosine(initial=0.3, epochs=4), 0, lambda x: 0.3 * half_cosine(min(1, x / 40))),
        (
            Exponential(initial=0.3, rate=0.5, epochs=2, warmup_epochs=1),
            10,
            lambda step: 0.3 * 0.5 ** (step / 20),
        ),
        (
            Exponential(initial=0.3, rate=0.5, epochs=2, staircase=True),
            0,
            lambda step: 0.3 * 0.5 ** (step // 20),
        ),
        (
            Piecewise(initial=0.3, boundaries=(2, 3.5), values=(0.1, 0.01)),
            0,
            lambda step: 0.3 if step < 20 else 0.1 if step < 35 else 0.01,
        ),
    ],
)
def test_the_rate_of_each_step(schedule, warmup, after):
    rising = [0.3 * step / warmup for step in range(warmup)]
    expected = rising + [after(step) for step in range(EPOCHS * STEPS - warmup)]
    np.testing.assert_allclose(rates(schedule), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(rates(schedule, 4.0), 4.0 * rates(schedule), rtol=1e-5)
