"""Lineage of artifacts, and the references that find them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from ml_metadata import MetadataStore

from runners.metadata.read_metadata import read_upstream
from runners.metadata.trace_lineage import find_artifact, served_models, trace_lineage
from serving.local_store import LocalModelStore
from sluice.errors import ExitCode, UsageError

pytestmark = pytest.mark.unit


def _find(past, reference):
    graph = past.graph()
    return find_artifact(
        graph, served_models(graph, [past.workspace.serving]), reference
    )


def _trace(past, reference):
    graph = past.graph()
    served = served_models(graph, [past.workspace.serving])
    return trace_lineage(graph, find_artifact(graph, served, reference)[0], served)


def _id_of(past, uri: Path) -> int:
    artifacts = past.graph().artifacts.values()
    return next(item.id for item in artifacts if item.uri == str(uri))


def test_runs_after_the_clock_was_set_back_are_found(past):
    """ML Metadata reads 100 executions at once, and lost those of the next page."""
    for _ in range(26):
        past.run()
    with sqlite3.connect(past.workspace.metadata_db) as database:
        ahead = "create_time_since_epoch = create_time_since_epoch + 3600000"
        database.execute(f"UPDATE Execution SET {ahead}")
    run_id = past.run()
    executions = past.graph().executions_of([run_id])
    assert [item.node for item in executions] == [
        *("TFRecordGen", "Trainer", "ModelVerdict", "Pusher")
    ]
    # As TFX asks, to resolve the inputs of a node.
    pipeline = past.store.get_context_by_type_and_name("pipeline", "digits")
    assert len(past.store.get_executions_by_context(pipeline.id)) == 4 * 27
    # Else `sluice.patches.ml_metadata` is no longer needed.
    original = vars(MetadataStore)["get_executions_by_context"].func
    assert len(original(past.store, pipeline.id)) < 4 * 27


def test_a_model_is_traced_to_data_schema_code_and_run(past):
    first = past.run()
    second = past.run(push=True)
    traced = _trace(past, "Trainer.model")
    assert traced["artifact"]["uri"] == str(past.made_by(second, "Trainer.model"))
    origin = traced["origin"]
    assert (origin["run_id"], origin["run_ids"]) == (second, [first, second])
    assert origin["data"] == [
        {
            "path": "/data/digits",
            "span": 0,
            "version": None,
            "fingerprint": "sha256:da7a",
        }
    ]
    assert origin["schemas"] == [
        {"name": "schema.pbtxt", "file": str(past.schema), "digest": "5c" * 32}
    ]
    assert [item["version"] for item in traced["served"]] == [1]
    assert [(item["node"], item["code"]) for item in traced["executions"]] == [
        ("TFRecordGen", {"components.ingest": "c0de1"}),
        ("Trainer", {"pipeline.training.run_fn": second}),
    ]


def test_reading_only_what_is_upstream_gives_the_same_origin(past):
    past.run(push=True)
    past.run(data=True)
    past.run(push=True)
    past.run()
    graph = past.graph()
    for artifact_id in graph.artifacts:
        whole = trace_lineage(graph, artifact_id) | {"uses": []}
        upstream, complete = read_upstream(past.store, artifact_id)
        assert (trace_lineage(upstream, artifact_id), complete) == (whole, True)
    first, last = min(graph.artifacts), max(graph.artifacts)
    upstream, _ = read_upstream(past.store, first)
    assert len(upstream.executions) == 1 < len(graph.executions)
    upstream, complete = read_upstream(past.store, last, max_executions=1)
    assert (len(upstream.executions), complete) == (1, False)
    nearest = trace_lineage(upstream, last)
    assert [item["id"] for item in nearest["executions"]] == [*upstream.executions]


def test_a_number_is_a_version(past):
    past.run(push=True)
    model = past.made_by(past.run(push=True), "Trainer.model")
    for reference in ("v2", "2"):
        assert _find(past, reference) == (_id_of(past, model), "version 2")
    assert _find(past, "artifact:2") == (2, "artifact 2")


def test_an_output_name_is_the_newest_artifact_even_if_reused(past):
    first = past.made_by(past.run(), "Trainer.model")
    second = past.made_by(past.run(), "Trainer.model")
    assert _find(past, "Trainer.model")[0] == _id_of(past, second)
    run_id = past.run(train=False)
    reused = past.graph().executions_of([run_id])[1]
    assert _id_of(past, second) in reused.outputs["model"]
    third = past.execution(
        "20270101T000000Z-aaaa",
        "Trainer",
        reused={"model": _id_of(past, first)},
        state=5,
    )
    assert third > reused.id
    assert _find(past, "Trainer.model")[0] == _id_of(past, first)


@pytest.mark.parametrize(
    "reference",
    ["Traner.model", "v9", "3", "9" * 5000, "artifact:99", f"artifact:{'9' * 5000}"],
    ids=lambda text: text[:12],
)
def test_an_unknown_reference_lists_the_known_ones(past, reference):
    past.run(push=True)
    with pytest.raises(UsageError, match="there is no artifact or version") as raised:
        _find(past, reference)
    assert raised.value.exit_code == ExitCode.USAGE
    assert {"v1", "Trainer.model"} <= {*raised.value.examples}


def test_only_properties_on_the_list_are_shown(past):
    past.run(push=True)
    text = json.dumps(_trace(past, "Pusher.pushed_model"))
    assert "hunter2" not in text and "secret" not in text
    assert "pipeline.training.run_fn.run_fn" in text


def test_a_version_that_no_run_of_this_workspace_has_pushed(past, tmp_path):
    past.run(push=True)
    other = LocalModelStore(tmp_path / "theirs")
    other.publish(past.workspace.serving / "1", facts={"pipeline_run_id": "theirs"})
    graph = past.graph()
    served = served_models(graph, [other.root])
    with pytest.raises(UsageError, match="the model behind version 1 is unknown"):
        find_artifact(graph, served, "v1")
