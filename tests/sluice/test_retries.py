"""Number and wait of retries."""

from __future__ import annotations

import pytest

from sluice.retries import Retries

pytestmark = pytest.mark.unit


def test_a_named_node_has_its_own_retries() -> None:
    retries = Retries(default=1, nodes={"Trainer": 3})
    assert (retries.of("Trainer"), retries.of("Pusher")) == (3, 1)


def test_the_wait_doubles_up_to_five_minutes() -> None:
    waits = [Retries(backoff_s=5.0).wait_s(attempt) for attempt in range(1, 9)]
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    "wrong", [{"default": -1}, {"nodes": {"Trainer": 21}}, {"backoff_s": -0.1}]
)
def test_invalid_values_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        Retries.model_validate(wrong)
