"""The local runner on small TFX pipelines of somebody else."""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tf


@pytest.fixture
def run_nodes(tmp_path: Path):
    """Runs components as one pipeline; returns states by node, result and events."""

    def run_nodes(components: list[Any], run_id: str = "one", cache: bool = False):
        from tfx.orchestration import metadata
        from tfx.orchestration.pipeline import Pipeline

        from runners.local.run import run

        connection = metadata.sqlite_metadata_connection_config(str(tmp_path / "m.db"))
        pipeline = Pipeline(
            pipeline_name="other",
            pipeline_root=str(tmp_path / "root"),
            metadata_connection_config=connection,
            components=components,
            enable_cache=cache,
        )
        events: list[dict] = []
        result = run(pipeline, run_id, events.append, run_dir=tmp_path / run_id)
        return {node.node: node.state for node in result.nodes}, result, events

    return run_nodes


def _importer(uri: Path):
    from tfx.dsl.components.common.importer import Importer
    from tfx.types import standard_artifacts

    return Importer(
        source_uri=str(uri), artifact_type=standard_artifacts.Examples
    ).with_id("Data")


def _statistics(examples):
    from tfx.components import StatisticsGen

    return StatisticsGen(examples=examples)


def _validator(statistics, schema):
    from tfx.components import ExampleValidator

    return ExampleValidator(statistics=statistics, schema=schema)


def _schema(path: Path):
    from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen

    return ImportSchemaGen(schema_file=str(path))


def test_a_failed_node_stops_what_needs_it_and_nothing_else(
    run_nodes, project: Path, tmp_path: Path
) -> None:
    schema = _schema(project / "schemas" / "digits" / "schema.pbtxt")
    data = _importer(tmp_path / "nowhere")
    statistics = _statistics(data.outputs["result"])
    validator = _validator(statistics.outputs["statistics"], schema.outputs["schema"])
    states, result, events = run_nodes([data, statistics, schema, validator])
    assert states == {
        "Data": "ran",
        "StatisticsGen": "failed",
        "ImportSchemaGen": "ran",
        "ExampleValidator": "not_reached",
    }
    assert not result.succeeded
    (failed,) = [node for node in result.nodes if node.error]
    assert failed.error.exit_code == 7
    assert "StatisticsGen failed" in failed.error.message
    log = tmp_path / "one" / "logs" / "StatisticsGen.log"
    assert "Traceback" in log.read_text()
    assert [event["event"] for event in events].count("node_started") == 3
    assert events[0]["nodes"][0].keys() == {"id", "kind", "upstream"}


def test_inputs_that_do_not_resolve_are_a_failure(run_nodes) -> None:
    """TFX's own runner returns normally after this."""
    from tfx.types import Channel, standard_artifacts

    never_made = Channel(type=standard_artifacts.Examples)
    states, result, _ = run_nodes([_statistics(never_made)])
    assert states == {"StatisticsGen": "failed"}
    assert not result.succeeded


def test_a_condition_that_does_not_hold_skips(
    run_nodes, project: Path, tmp_path: Path
) -> None:
    from tfx.dsl.experimental.conditionals.conditional import Cond

    schema = _schema(project / "schemas" / "digits" / "schema.pbtxt")
    with Cond(schema.outputs["schema"].future()[0].uri == "something else"):
        other = _schema(project / "schemas" / "taxi" / "schema.pbtxt").with_id("Other")
    states, result, _ = run_nodes([schema, other])
    assert states == {"ImportSchemaGen": "ran", "Other": "skipped"}
    assert result.succeeded


def test_the_same_run_is_continued_and_another_is_cached(
    run_nodes, project: Path
) -> None:
    path = project / "schemas" / "digits" / "schema.pbtxt"
    assert run_nodes([_schema(path)], cache=True)[0] == {"ImportSchemaGen": "ran"}
    assert run_nodes([_schema(path)], cache=True)[0] == {"ImportSchemaGen": "ran"}
    states, _, events = run_nodes([_schema(path)], run_id="two", cache=True)
    assert states == {"ImportSchemaGen": "cached"}
    (uri,) = [item["uri"] for item in events[-1]["outputs"]["schema"]]
    assert (Path(uri) / "schema.pbtxt").is_file()


def test_an_empty_pipeline_is_refused(run_nodes) -> None:
    from sluice.errors import UsageError

    with pytest.raises(UsageError, match="has no nodes"):
        run_nodes([])
