"""Features of TFX's own local runner that ours supports."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tf


def test_parameters_and_values_reach_the_nodes(foreign, own):
    from tfx.orchestration.data_types import RuntimeParameter

    def take(name: str, **values):
        return own.TakeParameters(trace=foreign.trace(name), **values).with_id(name)

    make = own.Make(trace=foreign.trace("Make"))
    values = own.Measure(data=make.outputs["out"]).outputs
    nodes = [
        take("RunId", text=RuntimeParameter("pipeline-run-id", str)),
        take("Default", number=RuntimeParameter("number", int, 7)),
        take("Without", text=RuntimeParameter("nobody-knows", str)),
        take(
            "Dynamic",
            text=values["text"].future()[0].value,
            number=values["length"].future()[0].value,
        ),
        own.TakeValues(
            trace=foreign.trace("Values"),
            **{name: values[name] for name in values if name != "out"},
        ),
    ]

    run = foreign.run([make, values["text"].producer_component, *nodes])

    def of(name: str) -> tuple[str, int]:
        (found,) = foreign.notes(name)
        return found["text"], found["number"]

    assert of("RunId") == ("one", 0)
    assert of("Default") == ("", 7)
    assert of("Dynamic") == ("hello", 5)
    (found,) = foreign.notes("Values")
    letters = ["e", "h", "l", "o"]
    assert found["values"] == [5, 2.5, "hello", False, letters, "a default"]
    # As in TFX's own runner; the other nodes run all the same.
    assert [name for name, state in run.states.items() if state != "ran"] == ["Without"]
    assert "Parameter value not ready for text" in run.message("Without")
