"""Compiles the pipeline of a config, for local runs and cloud services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from pipeline.graph.locations import Locations
from runners.cloud.spec import read_spec


def config_of(project: Path, name: str, **options):
    return validate_config(load_config(name, cwd=project, **options)).config


def compile_locally(config, tmp_path: Path, **locations):
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


def cloud_config(config, **cloud):
    from pipeline.config.cloud import Cloud

    section = Cloud.model_validate({"root": "gs://bucket/root", **cloud})
    return config.model_copy(update={"cloud": section})


def cloud_job(config, *, scheduled: bool = False, **cloud) -> dict:
    from runners.cloud.compile_job import compile_pipeline

    return compile_pipeline(cloud_config(config, **cloud), scheduled=scheduled)[0]


def properties_of(nodes) -> dict[str, dict[str, Any]]:
    return {
        name: {
            key: getattr(value.field_value, value.field_value.WhichOneof("value"))
            for key, value in node.parameters.parameters.items()
        }
        for name, node in nodes.items()
    }


def by_id(job: Any) -> dict[str, Any]:
    """Returns the tasks of a job."""
    return {task.id: task for task in read_spec(job).tasks}


def container(job: Any, node: str) -> Any:
    return by_id(job)[node].executor.container


def env(container: Any) -> dict[str, str]:
    return {item.name: item.value for item in container.env}


def parameters_of(job: Any) -> Any:
    """Returns the declared parameters of a job."""
    return job["pipelineSpec"]["root"]["inputDefinitions"]["parameters"]


def trainer_config(job: Any) -> Any:
    return json.loads(parameters_of(job)["trainer_config"]["defaultValue"])
