"""What is laid over the tasks of a spec."""

from __future__ import annotations

from typing import Any

import pytest

from runners.cloud.task_settings import skip_without_new_data

pytestmark = pytest.mark.unit


def test_readers_of_new_data_are_skipped_without_it():
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
    spec = {"root": {"dag": {"tasks": tasks}}, "components": {}}
    skip_without_new_data(spec, "Gen", "examples", "new_data")
    conditions = {
        name: task.get("triggerPolicy", {}).get("condition")
        for name, task in tasks.items()
    }
    test = "(inputs.artifacts['{}'].artifacts[0].metadata['new_data'] == 1.0)"
    assert conditions == {
        "Gen": None,
        "Reader": test.format("data"),
        "Guarded": "(1 == 1) && " + test.format("examples"),
        "Other": None,
    }
