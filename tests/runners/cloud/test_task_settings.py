"""What is laid over the tasks of a spec."""

from __future__ import annotations

from typing import Any

import pytest

from runners.cloud.task_settings import set_defaults, skip_without_new_data

pytestmark = pytest.mark.unit


def _spec(nested: bool) -> dict[str, Any]:
    source = {"producerTask": "Gen", "outputArtifactKey": "examples"}
    other = {"producerTask": "Gen", "outputArtifactKey": "quarantine"}
    tasks: dict[str, Any] = {
        "Gen": {},
        "Reader": {"inputs": {"artifacts": {"data": {"taskOutputArtifact": source}}}},
        "Guarded": {
            "inputs": {"artifacts": {"examples": {"taskOutputArtifact": source}}},
            "triggerPolicy": {"condition": "(1 == 1)"},
        },
        "Other": {"inputs": {"artifacts": {"q": {"taskOutputArtifact": other}}}},
    }
    inputs = {"parameters": {"a": {"parameterType": "STRING"}}}
    if not nested:
        root = {"dag": {"tasks": tasks}, "inputDefinitions": inputs}
        return {"root": root, "components": {}}
    return {
        "root": {"dag": {"tasks": {"tfx-dag": {}}}, "inputDefinitions": inputs},
        "components": {"tfx-dag": {"dag": {"tasks": tasks}}},
    }


@pytest.mark.parametrize("nested", [False, True])
def test_readers_of_new_data_are_skipped_without_it(nested):
    spec = _spec(nested)
    skip_without_new_data(spec, "Gen", "examples", "new_data")
    found = spec["components"]["tfx-dag"] if nested else spec["root"]
    conditions = {
        name: task.get("triggerPolicy", {}).get("condition")
        for name, task in found["dag"]["tasks"].items()
    }
    test = "(inputs.artifacts['{}'].artifacts[0].metadata['new_data'] == 1.0)"
    assert conditions == {
        "Gen": None,
        "Reader": test.format("data"),
        "Guarded": "(1 == 1) && " + test.format("examples"),
        "Other": None,
    }


def test_parameters_reach_the_tasks_of_a_pipeline_with_an_exit_handler():
    """TFX's compiler nests the tasks then, and does not pass the parameters on."""
    spec = _spec(nested=True)
    set_defaults(spec, {"a": "x"})
    declared = {"parameterType": "STRING", "defaultValue": "x", "isOptional": True}
    assert spec["root"]["inputDefinitions"]["parameters"] == {"a": declared}
    nested = spec["components"]["tfx-dag"]["inputDefinitions"]["parameters"]
    assert nested == {"a": declared}
    assert spec["root"]["dag"]["tasks"]["tfx-dag"]["inputs"]["parameters"] == {
        "a": {"componentInputParameter": "a"}
    }
