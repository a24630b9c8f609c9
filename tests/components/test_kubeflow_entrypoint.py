"""The entry point of containers on Kubeflow Pipelines."""

import json
import sys

import pytest

from components import kubeflow_entrypoint

pytestmark = pytest.mark.unit

EXAMPLES = {"artifactType": {"instanceSchema": "title: tfx.Examples\ntype: object\n"}}


def artifact(uri, **kind):
    """Returns an input artifact as Kubeflow passes it: without a type."""
    kind = kind or {"instanceSchema": ""}
    return {"artifacts": [{"name": "examples", "uri": uri, "type": kind}]}


def test_inputs_get_the_declared_type_and_a_name_of_their_own(monkeypatch):
    given = {
        "inputs": {
            "artifacts": {
                "examples": artifact("gs://b/1"),
                "other": artifact("gs://b/2", schemaTitle="system.Dataset"),
            }
        },
        "outputs": {},
    }
    declared = {"artifacts": {"examples": EXAMPLES, "other": EXAMPLES}}
    monkeypatch.setattr(sys, "argv", ["entrypoint"])
    monkeypatch.setattr("runpy.run_module", lambda name, run_name: None)
    kubeflow_entrypoint.main(
        [
            *("--executor_class_path", "a.B"),
            *("--json_serialized_invocation_args", json.dumps(given)),
            *("--json_serialized_inputs_spec_args", json.dumps(declared)),
        ]
    )
    _, flag, text, *rest = sys.argv
    assert flag == "--json_serialized_invocation_args"
    found = json.loads(text)["inputs"]["artifacts"]
    (examples,), (other,) = (item["artifacts"] for item in found.values())
    assert examples == {
        "name": "gs://b/1",
        "uri": "gs://b/1",
        "type": EXAMPLES["artifactType"],
    }
    assert (other["name"], other["type"]) == (
        "gs://b/2",
        {"schemaTitle": "system.Dataset"},
    )
    assert rest[-2:] == ["--executor_class_path", "a.B"]
