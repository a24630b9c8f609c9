"""Placeholders of commands and constants, and the parameters of a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners.cloud.spec import read_spec
from runners.rehearsal.invocation import (
    Invocation,
    Job,
    job_parameters,
    substitute,
)
from runners.rehearsal.metadata_store import MetadataStore, StoredArtifact, TaskResult
from sluice.errors import NodeError, UsageError
from tests.runners.rehearsal.conftest import container, make_job, task

pytestmark = pytest.mark.unit

GIVEN = {
    "inputs": {
        "parameterValues": {"n": 7, "word": "six"},
        "artifacts": {
            "model": {"artifacts": [{"uri": "gs://b/m", "metadata": {"id": "a/7"}}]},
            "none": {"artifacts": []},
        },
    },
    "outputs": {"artifacts": {"out": {"artifacts": [{"uri": "gs://b/o"}]}}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--uri={{$.inputs.artifacts['model'].uri}}", "--uri=gs://b/m"),
        ("{{$.inputs.artifacts['model'].metadata['id']}}", "a/7"),
        ("{{$.inputs.parameters['n']}}{{$.inputs.parameters['word']}}", "7six"),
        ("{{$.outputs.artifacts['out'].uri}}", "gs://b/o"),
        ("{{$.pipeline_job_name}}", "job"),
        ("no placeholder: {{x}} {$}", "no placeholder: {{x}} {$}"),
    ],
)
def test_placeholders(text: str, expected: str) -> None:
    assert substitute(text, GIVEN, {"pipeline_job_name": "job"}) == expected


def test_whole_invocation_as_json() -> None:
    assert json.loads(substitute("{{$}}", GIVEN, {})) == GIVEN


@pytest.mark.parametrize(
    "text",
    [
        "{{$.inputs.artifacts['none'].uri}}",
        "{{$.inputs.artifacts['other'].uri}}",
        "{{$.inputs.artifacts['model'].value}}",
        "{{$.inputs | tojson}}",
    ],
)
def test_placeholder_without_a_value(text: str) -> None:
    with pytest.raises(NodeError, match="has no value"):
        substitute(text, GIVEN, {})
    assert substitute(text, GIVEN, {}, missing=lambda _: "-") == "-"


def _invocation(tmp_path: Path, word: str, model: str) -> Invocation:
    tasks = {
        "Make": task(container(""), makes=("model",)),
        "Use": task(
            container(""),
            reads={"model": "Make.model"},
            takes={"word": {"componentInputParameter": "word"}},
        ),
    }
    declared = {"word": {"parameterType": "STRING"}}
    job = make_job(tmp_path, tasks, parameters=declared, values={"word": word})
    spec = read_spec(job)
    made = StoredArtifact(model, "test.Thing", "gs://b/m", {})
    return Invocation.make(
        Job(spec, "job-1", job_parameters(spec)),
        spec.task("Use"),
        {"Make": TaskResult({"model": [made]})},
        MetadataStore(),
        "unique",
    )


def test_cache_key_is_of_parameters_and_of_artifacts_by_name(tmp_path: Path) -> None:
    keys = {
        _invocation(tmp_path, word, model).cache_key()
        for word, model in (("a", "m/1"), ("a", "m/1"), ("b", "m/1"), ("a", "m/2"))
    }
    assert len(keys) == 3


def test_outputs_are_below_the_pipeline_root(tmp_path: Path) -> None:
    found = _invocation(tmp_path, "a", "m/1")
    assert found.root == f"{tmp_path}/root/1/job-1/Use_unique"
    outputs = found.executor_input()["outputs"]
    assert outputs["outputFile"] == f"{found.root}/executor_output.json"


def test_job_parameters(tmp_path: Path) -> None:
    declared = {
        "a": {"parameterType": "STRING", "defaultValue": ""},
        "b": {"parameterType": "STRING"},
    }

    def parameters(values: dict[str, str]) -> dict[str, str]:
        job = make_job(tmp_path, {}, parameters=declared, values=values)
        return job_parameters(read_spec(job))

    assert parameters({"b": "1"}) == {"a": "", "b": "1"}
    with pytest.raises(UsageError, match="neither a value nor a default") as caught:
        parameters({})
    assert caught.value.actual == "b"
    with pytest.raises(UsageError, match="does not have") as caught:
        parameters({"b": "1", "c": "2"})
    assert caught.value.actual == "c"
