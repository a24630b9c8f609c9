"""Learning rates by step, compared with formulas and Keras' own schedules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pipeline.config.learning_rate import Constant, Cosine, Exponential, Piecewise

pytestmark = pytest.mark.tf

STEPS = 10
EPOCHS = 8


def rates(schedule: Any, scale: float = 1.0, count: int = EPOCHS * STEPS) -> np.ndarray:
    from pipeline.training.compile import make_learning_rate

    rate = make_learning_rate(
        schedule, epochs=EPOCHS, steps_per_epoch=STEPS, scale=scale
    )
    if isinstance(rate, float):
        return np.full(count, rate)
    return np.array([rate(step).numpy() for step in range(count)])


def expected(after: Any, warmup: int = 0, initial: float = 0.0) -> list[float]:
    rising = [initial * step / warmup for step in range(warmup)]
    return rising + [float(after(step)) for step in range(EPOCHS * STEPS - warmup)]


def test_a_number_stays_one_so_that_callbacks_can_set_it():
    from pipeline.training.compile import make_learning_rate

    constant = Constant(initial=0.3)
    for given in (0.3, constant):
        rate = make_learning_rate(given, epochs=2, steps_per_epoch=5, scale=2.0)
        assert rate == pytest.approx(0.6)


def test_constant_after_a_warm_up():
    found = rates(Constant(initial=0.5, warmup_epochs=1.5))

    np.testing.assert_allclose(found, expected(lambda step: 0.5, 15, 0.5), rtol=1e-6)


@pytest.mark.parametrize("warmup", [0, 20])
def test_cosine(warmup):
    schedule = Cosine(initial=0.2, warmup_epochs=warmup / STEPS, final_fraction=0.1)
    found = rates(schedule)

    rest = EPOCHS * STEPS - warmup

    def formula(step: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * step / rest))
        return 0.2 * (0.9 * cosine + 0.1)

    np.testing.assert_allclose(found, expected(formula, warmup, 0.2), rtol=1e-5)


def test_cosine_that_ends_before_training():
    found = rates(Cosine(initial=1.0, epochs=4))

    assert found[4 * STEPS - 1] > 0
    np.testing.assert_allclose(found[4 * STEPS :], 0.0, atol=1e-7)


@pytest.mark.parametrize("staircase", [False, True])
def test_exponential(staircase):
    found = rates(
        Exponential(
            initial=0.1, rate=0.5, epochs=2, staircase=staircase, warmup_epochs=1
        )
    )

    def formula(step: int) -> float:
        passed = step / (2 * STEPS)
        return 0.1 * 0.5 ** (math.floor(passed) if staircase else passed)

    np.testing.assert_allclose(found, expected(formula, STEPS, 0.1), rtol=1e-5)


def test_piecewise_changes_with_the_first_step_of_an_epoch():
    found = rates(Piecewise(initial=1.0, boundaries=(2, 3.5), values=(0.1, 0.01)))

    def formula(step: int) -> float:
        return 1.0 if step < 20 else 0.1 if step < 35 else 0.01

    np.testing.assert_allclose(found, expected(formula), rtol=1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        Constant(initial=0.1, warmup_epochs=1),
        Cosine(initial=0.1),
        Exponential(initial=0.1),
        Piecewise(initial=0.1, boundaries=(1,), values=(0.2,)),
    ],
)
def test_scaling_multiplies_every_learning_rate(schedule):
    np.testing.assert_allclose(rates(schedule, 4.0), 4.0 * rates(schedule), rtol=1e-5)


def test_scales():
    from pipeline.training.compile import scale_of

    assert scale_of("none", 8) == 1.0
    assert scale_of("linear", 8) == 8.0
    assert scale_of("sqrt", 8) == pytest.approx(8**0.5)
