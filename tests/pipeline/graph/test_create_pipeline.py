"""The TFX pipeline of a config, for local runs and cloud services."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.graph.locations import Locations

pytestmark = pytest.mark.tf

# What the cloud compiler makes of one node. Everything else keeps its name.
EXPANSIONS = {
    "LatestBlessedModel-model-resolver": "LatestBlessedModel",
    "LatestBlessedModel-model-blessing-resolver": "LatestBlessedModel",
}
NODES = {
    "TFRecordGen",
    "StatisticsGen",
    "ImportSchemaGen",
    "ExampleValidator",
    "DataVerdict",
    "DataGate",
    "AcceptData",
    "Transform",
    "Trainer",
    "LatestBlessedModel",
    "Evaluator",
    "ModelVerdict",
    "Pusher",
}


def _config(project: Path, name: str, **options):
    return validate_config(load_config(name, cwd=project, **options)).config


def _compile(config, tmp_path: Path, **locations):
    from tfx.dsl.compiler import compiler

    from pipeline.graph.create_pipeline import create_pipeline

    where = {
        "pipeline_root": str(tmp_path / "root"),
        "metadata_db": tmp_path / "metadata.db",
        "inputs_dir": tmp_path / "inputs",
        "serving_dir": str(tmp_path / "serving"),
        "baseline_store": str(tmp_path / "accepted"),
        **locations,
    }
    pipeline = create_pipeline(config, Locations(**where))
    return {
        node.pipeline_node.node_info.id: node.pipeline_node
        for node in compiler.Compiler().compile(pipeline).nodes
    }


def _local_edges(nodes) -> set[tuple[str, str]]:
    return {(up, name) for name, node in nodes.items() for up in node.upstream_nodes}


def _cloud_job(config, tmp_path: Path) -> dict:
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2

    from pipeline.graph.create_pipeline import create_pipeline

    locations = Locations(
        "gs://bucket/root", None, tmp_path / "inputs", "gs://bucket/s", "gs://bucket/l"
    )
    runner = v2.KubeflowV2DagRunner(
        v2.KubeflowV2DagRunnerConfig(default_image="image", use_pipeline_spec_2_1=True),
        output_filename=str(tmp_path / "job.json"),
    )
    return runner.run(create_pipeline(config, locations))


@pytest.mark.parametrize("name", ["digits", "taxi"])
def test_cloud_and_local_runs_have_the_same_graph(
    project: Path, tmp_path: Path, name: str
) -> None:
    config = _config(project, name)
    local = _compile(config, tmp_path)
    job = _cloud_job(config, tmp_path)
    assert job["pipelineSpec"]["schemaVersion"] == "2.1.0"
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    collapsed = {task: EXPANSIONS.get(task, task) for task in tasks}
    assert set(collapsed.values()) == set(local) == NODES
    edges = {
        (collapsed[up], collapsed[task])
        for task, spec in tasks.items()
        for up in spec.get("dependentTasks", [])
    }
    assert {(a, b) for a, b in edges if a != b} == _local_edges(local)


def test_spans_are_a_runtime_parameter_of_cloud_pipelines(
    project: Path, tmp_path: Path
) -> None:
    """A service runs no driver of ours, which pins them on a laptop."""
    splits = "{train: '{SPAN}/train-*', eval: '{SPAN}/eval-*'}"
    overrides = [f"data.splits={splits}", "data.serving='{SPAN}/sent-*'"]
    config = _config(project, "digits", overrides=overrides)
    root = _cloud_job(config, tmp_path)["pipelineSpec"]["root"]
    declared = root["inputDefinitions"]["parameters"]
    assert {"spans", "serving_spans"} <= set(declared)
    tasks = root["dag"]["tasks"]
    for node, parameter in [
        ("TFRecordGen", "spans"),
        ("ServingTFRecordGen", "serving_spans"),
    ]:
        given = tasks[node]["inputs"]["parameters"]["spans"]
        assert given == {"componentInputParameter": parameter}
    local = _compile(config, tmp_path)["TFRecordGen"].parameters.parameters["spans"]
    assert local.field_value.string_value == ""

    plain = _cloud_job(_config(project, "digits"), tmp_path)["pipelineSpec"]["root"]
    parameters = plain.get("inputDefinitions", {}).get("parameters", {})
    assert not {"spans", "serving_spans"} & set(parameters)


def test_training_waits_for_the_data_gate(project: Path, tmp_path: Path) -> None:
    nodes = _compile(_config(project, "digits"), tmp_path)
    assert {down for up, down in _local_edges(nodes) if up == "DataGate"} == {
        "AcceptData",
        "Transform",
        "Trainer",
    }
    assert not nodes["DataGate"].outputs.outputs


def test_own_artifact_types_resolve_by_name() -> None:
    import components

    for name in components.ARTIFACT_TYPES:
        type_name = getattr(components, name).TYPE_NAME
        assert type_name == f"components.{name}"


def test_every_call_creates_new_components(project: Path, tmp_path: Path) -> None:
    from pipeline.graph.create_pipeline import create_pipeline

    config = _config(project, "digits")
    locations = Locations(str(tmp_path), tmp_path / "m.db", tmp_path / "in", "s", "l")
    first, second = (create_pipeline(config, locations) for _ in range(2))
    assert not {id(c) for c in first.components} & {id(c) for c in second.components}


def _properties(nodes) -> dict[str, dict[str, Any]]:
    return {
        name: {
            key: getattr(value.field_value, value.field_value.WhichOneof("value"))
            for key, value in node.parameters.parameters.items()
        }
        for name, node in nodes.items()
    }


def _changed(project: Path, tmp_path: Path, name: str, *overrides: str) -> set[str]:
    """Returns the nodes whose exec properties an override changes."""
    before = _properties(_compile(_config(project, name), tmp_path))
    config = _config(project, name, overrides=overrides)
    after = _properties(_compile(config, tmp_path))
    return {node for node in before if before[node] != after[node]}


@pytest.mark.parametrize(
    ("override", "nodes"),
    [
        ("train.epochs=7", {"Trainer"}),
        ("model=dense", {"Trainer"}),
        ("description=other words", set()),
        ("evaluate.metrics=[AUC, Precision]", {"Evaluator"}),
        ("evaluate.thresholds=[]", {"ModelVerdict"}),
        ("features.company.buckets=32", {"Transform", "Trainer"}),
        ("examples.max_record_bytes=1000", {"TFRecordGen"}),
        (
            "data.splits.test=null",
            {"TFRecordGen", "DataVerdict", "AcceptData", "Evaluator", "ModelVerdict"},
        ),
    ],
)
def test_a_config_change_affects_only_nodes_that_use_it(
    project: Path, tmp_path: Path, override: str, nodes: set[str]
) -> None:
    assert _changed(project, tmp_path, "taxi", override) == nodes


def test_every_node_but_the_resolver_has_a_fingerprint(
    project: Path, tmp_path: Path
) -> None:
    properties = _properties(_compile(_config(project, "digits"), tmp_path))
    without = {node for node, found in properties.items() if "fingerprint" not in found}
    assert without == {"LatestBlessedModel"}
    trainer = json.loads(properties["Trainer"]["fingerprint"])
    assert trainer["packages"]["tensorflow"]
    assert {"pipeline.training.run_fn", "pipeline.training.models.cnn"} <= set(
        trainer["code"]
    )
    assert "pipeline.training.models.dense" not in trainer["code"]


def test_code_for_remote_storage_counts_where_something_is_remote(
    project: Path, tmp_path: Path
) -> None:
    def nodes(**locations: str) -> set[str]:
        compiled = _compile(_config(project, "digits"), tmp_path, **locations)
        return {
            node
            for node, found in _properties(compiled).items()
            if "sluice.storage.gcs_storage" in found.get("fingerprint", "")
        }

    assert nodes() == set()
    # TFX's own components and the trainer do not use it.
    assert nodes(pipeline_root="gs://bucket/root") == {
        "TFRecordGen",
        "DataVerdict",
        "DataGate",
        "AcceptData",
        "Evaluator",
        "ModelVerdict",
        "Pusher",
    }


@pytest.mark.parametrize("name", ["digits", "taxi"])
def test_the_evaluator_may_reuse_the_metrics_of_the_baseline(
    project: Path, tmp_path: Path, name: str
) -> None:
    from components.evaluator.add_baseline import can_add_baseline

    properties = _properties(_compile(_config(project, name), tmp_path))
    assert can_add_baseline(properties["Evaluator"])


def test_the_code_of_a_node_is_what_it_runs() -> None:
    from sluice import code_fingerprint

    nodes = {
        "Transform": ["pipeline.training.preprocessing"],
        "Trainer": ["pipeline.training.run_fn", "pipeline.training.models.cnn"],
        "Pusher": ["components.pusher.executor"],
    }
    root = [Path(code_fingerprint.__file__).parents[1]]
    found = {
        node: set(code_fingerprint.modules_of(entries, root))
        for node, entries in nodes.items()
    }
    assert "pipeline.training.models.cnn" in found["Trainer"]
    assert "pipeline.training.models.dense" not in found["Trainer"]
    assert "serving.model_store" in found["Pusher"]
    for modules in found.values():
        assert (
            not {"pipeline.config.config", "pipeline.graph.create_pipeline"} & modules
        )
        assert not {name for name in modules if name.startswith(("runners", "tests"))}


def test_the_path_of_the_schema_contains_its_digest(
    project: Path, tmp_path: Path
) -> None:
    def path_of_schema() -> str:
        nodes = _compile(_config(project, "digits"), tmp_path)
        return _properties(nodes)["ImportSchemaGen"]["schema_file"]

    schema = project / "schemas" / "digits" / "schema.pbtxt"
    text = schema.read_text()
    before = path_of_schema()
    assert Path(before).read_text() == text
    os.utime(schema, (0, 0))
    assert path_of_schema() == before
    try:
        schema.write_text(text + "# another comment\n")
        assert path_of_schema() != before
    finally:
        schema.write_text(text)


OWN = """
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples, String


@component
def Count(
    examples: InputArtifact[Examples],
    summary: OutputArtifact[String],
    at_least: Parameter[int] = 1,
):
    pass


class NoComponent:
    pass
"""
COUNT = {
    "component": "own_parts:Count",
    "inputs": {"examples": "TFRecordGen.examples"},
    "parameters": {"at_least": 2},
    "before": ["Transform"],
}
BULK_INFERRER = {
    "component": "tfx.components:BulkInferrer",
    "inputs": {"examples": "TFRecordGen.examples", "model": "Trainer.model"},
    "parameters": {"data_spec": {"example_splits": ["test"]}},
    "after": ["Pusher"],
}


@pytest.fixture
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own_parts.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path / "own")


def test_the_registry_agrees_with_the_components(project: Path, tmp_path: Path) -> None:
    from pipeline.graph.create_pipeline import create_pipeline
    from pipeline.graph.custom_nodes import sort_nodes
    from sluice.node_kinds import kind_of

    config = _config(project, "digits", overrides=["data.serving='sent-*'"])
    locations = Locations(str(tmp_path), tmp_path / "m.db", tmp_path / "in", "s", "l")
    components = {c.id: c for c in create_pipeline(config, locations).components}
    nodes = {node.id: node for node in sort_nodes(config)}
    assert components.keys() == nodes.keys()
    for name, component in components.items():
        assert set(nodes[name].outputs or ()) == set(component.outputs), name
        upstream = {node.id for node in component.upstream_nodes}
        assert upstream == nodes.keys() & set(nodes[name].upstream), name
    kinds = {name: kind_of(component.type) for name, component in components.items()}
    for trait, names in {
        "gate": {"DataGate"},
        "judges_data": {"DataVerdict"},
        "resolver": {"LatestBlessedModel"},
        "system": {"LatestBlessedModel"},
        "ingests": {"TFRecordGen", "ServingTFRecordGen"},
        "accepts_data": {"AcceptData"},
        "pushes": {"Pusher"},
    }.items():
        assert {name for name, kind in kinds.items() if getattr(kind, trait)} == names


def test_custom_nodes_are_in_local_and_cloud_pipelines(
    project: Path, tmp_path: Path, own_parts: None
) -> None:
    overrides = [f"nodes.Count={COUNT}", f"nodes.Predictions={BULK_INFERRER}"]
    config = _config(project, "digits", overrides=overrides)
    nodes = _compile(config, tmp_path)
    assert set(nodes) == NODES | {"Count", "Predictions"}
    assert list(nodes["Count"].upstream_nodes) == ["TFRecordGen"]
    assert "Count" in nodes["Transform"].upstream_nodes
    assert {"Pusher", "Trainer"} <= set(nodes["Predictions"].upstream_nodes)
    properties = _properties(nodes)
    assert properties["Count"]["at_least"] == 2
    assert list(json.loads(properties["Count"]["fingerprint"])["code"]) == [
        "own_parts (installed)"
    ]
    tasks = _cloud_job(config, tmp_path)["pipelineSpec"]["root"]["dag"]["tasks"]
    assert "Count" in tasks["Transform"]["dependentTasks"]
    assert "Pusher" in tasks["Predictions"]["dependentTasks"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"component": "own_parts:NoComponent"}, "is not a TFX component"),
        ({"component": "own_parts:Nothing"}, "cannot be imported: AttributeError"),
        ({"component": "no_such_module:Count"}, "cannot be imported: ModuleNotFound"),
        ({"inputs": {"examples": "StatisticsGen.statistics"}}, "'Count' cannot be"),
        ({"inputs": {"examples": "Trainer.nothing"}}, "Trainer has no output"),
        ({"inputs": {"examples": "Trainer.model"}}, r"of type Examples \(got Model\)"),
        (
            {
                **BULK_INFERRER,
                "parameters": {"data_spec": {"example_split": ["test"]}},
            },
            "data_spec: unknown field 'example_split', expected one of "
            "'example_splits'",
        ),
        ({"inputs": {}}, "component of 'Count' cannot be created"),
        ({"parameters": {"at_least": "two"}}, "component of 'Count' cannot be created"),
    ],
)
def test_a_component_that_cannot_be_created_is_a_config_error(
    project: Path, tmp_path: Path, own_parts: None, change: dict, message: str
) -> None:
    from sluice.errors import ConfigError

    overrides = [f"nodes.Count={ {**COUNT, **change, 'before': []} }"]
    config = _config(project, "digits", overrides=overrides)
    with pytest.raises(ConfigError, match=message) as caught:
        _compile(config, tmp_path)
    assert caught.value.where and "nodes.Count" in caught.value.where
