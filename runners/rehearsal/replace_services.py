"""Replaces what a compiled job asks for and a rehearsal does not have.

The services beside storage, other machines, and accelerators. Each change is a note of
the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.graph.arguments import LOCAL_BEAM_ARGS
from pipeline.graph.node_registry import PUSHER
from runners.cloud.job_inputs import TRAINER_CONFIG
from runners.cloud.task_settings import (
    DATAFLOW,
    EXECUTOR,
    IN_WORKER,
    containers_of,
    tasks_of,
)

_OF_OTHER_MACHINES = ("tpu", "multi_worker", "parameter_server")


def replace_services(job: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns a job that runs on one machine without other services, and the notes.

    Args:
      job: a compiled job, with the values of its parameters.
    """
    text, notes = json.dumps(job), []
    if EXECUTOR in text:
        text = text.replace(EXECUTOR, IN_WORKER)
        what = "the Trainer's custom job is not rehearsed: it runs in its own task"
        notes.append(f"{what}, once")
    job = json.loads(text)
    spec = job["pipelineSpec"]
    in_dataflow, with_accelerator = [], []
    for name, container in containers_of(spec):
        # An automatic choice would take the TPU that this variable promises.
        container["env"] = [
            variable
            for variable in container.get("env", [])
            if variable["name"] != "TPU_NAME"
        ]
        args = container.get("args", [])
        if DATAFLOW in args:
            # The first of the Beam options, which are the last arguments.
            container["args"] = [*args[: args.index(DATAFLOW)], *LOCAL_BEAM_ARGS]
            in_dataflow.append(name)
        if container.get("resources", {}).get("accelerator"):
            with_accelerator.append(name)
    if in_dataflow:
        names = ", ".join(in_dataflow)
        notes.append(f"Dataflow is not rehearsed: {names} run Beam in their own tasks")
    if with_accelerator:
        names = ", ".join(with_accelerator)
        notes.append(f"accelerators are not rehearsed: {names} takes what is here")
    notes += _replace_training(job)
    inputs = tasks_of(spec).get(PUSHER, {}).get("inputs", {}).get("parameters", {})
    value = inputs.get("custom_config", {}).get("runtimeValue", {})
    given = json.loads(value.get("constant") or "{}") or {}  # TFX writes "null", too.
    if left_out := given.keys() & {"registry", "endpoint"}:
        kept = {key: variable for key, variable in given.items() if key not in left_out}
        value["constant"] = json.dumps(kept)
        notes.append("registry and endpoint are not rehearsed: the bucket is pushed to")
    return job, notes


def trained_here(train: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings of a training that this machine needs instead, by key."""
    instead = {}
    if train["strategy"] in _OF_OTHER_MACHINES and not train["processes"]:
        instead["strategy"] = "one_device"
    if train["precision"] == "mixed_float16":  # Takes minutes per epoch on a CPU.
        instead["precision"] = "float32"
    return instead


def _replace_training(job: dict[str, Any]) -> Iterator[str]:
    """Lets the Trainer train as this machine can."""
    values = job["runtimeConfig"]["parameterValues"]
    declared = job["pipelineSpec"]["root"].get("inputDefinitions", {})
    default = declared.get("parameters", {}).get(TRAINER_CONFIG, {}).get("defaultValue")
    if text := values.get(TRAINER_CONFIG, default):
        config = json.loads(text)
        train = config["train"]
        if instead := trained_here(train):
            config["train"] = train | instead
            values[TRAINER_CONFIG] = json.dumps(config)
        for key, value in instead.items():
            yield f"train.{key} {train[key]} is not rehearsed: {value} takes its place"
