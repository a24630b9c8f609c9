"""TFX's cache after a garbage collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.metadata.read_metadata import read_metadata
from runners.operations.collect_garbage import collect_garbage
from sluice.project import own_root
from sluice.workspace import Workspace

pytestmark = pytest.mark.tf


def _run(workspace: Workspace, run_id: str, schema: str) -> None:
    """Runs one node with TFX's own launcher, under a run id of ours."""
    from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
    from tfx.dsl.compiler import compiler, constants
    from tfx.orchestration import metadata
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner
    from tfx.orchestration.pipeline import Pipeline
    from tfx.orchestration.portable import runtime_parameter_utils

    path = own_root() / "schemas" / schema / "schema.pbtxt"
    connection = metadata.sqlite_metadata_connection_config(str(workspace.metadata_db))
    pipeline = Pipeline(
        pipeline_name="digits",
        pipeline_root=str(workspace.artifacts),
        metadata_connection_config=connection,
        components=[ImportSchemaGen(schema_file=str(path))],
        enable_cache=True,
    )
    ir = compiler.Compiler().compile(pipeline)
    runtime_parameter_utils.substitute_runtime_parameter(
        ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )
    LocalDagRunner().run_with_ir(ir)


def test_the_cache_uses_kept_artifacts_only(tmp_path):
    workspace = Workspace(tmp_path / "digits")
    workspace.prepare()
    _run(workspace, "20260101T000000Z-aaaa", "digits")
    _run(workspace, "20260102T000000Z-aaaa", "taxi")
    before = read_metadata(workspace.metadata_db)
    assert [item.node for item in before.executions.values()] == ["ImportSchemaGen"] * 2
    assert [item.state for item in before.executions.values()] == ["complete"] * 2
    garbage = collect_garbage(workspace, [], keep=1)
    dropped, kept = (Path(item.uri) for item in before.artifacts.values())
    names = [item.name for item in garbage.items["artifacts"]]
    assert [x for x in names if ".system" not in x] == [str(dropped)]
    system = workspace.artifacts / "ImportSchemaGen" / ".system"
    assert not any(path.is_file() for path in system.rglob("*"))

    _run(workspace, "20260103T000000Z-aaaa", "taxi")
    _run(workspace, "20260104T000000Z-aaaa", "digits")
    states = [
        item.state for item in read_metadata(workspace.metadata_db).executions.values()
    ]
    assert states[2:] == ["cached", "complete"]
    assert (kept / "schema.pbtxt").is_file()
    made_again = workspace.artifacts / "ImportSchemaGen" / "schema" / "4"
    assert (made_again / "schema.pbtxt").is_file()
