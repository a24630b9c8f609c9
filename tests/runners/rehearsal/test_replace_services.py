"""What a rehearsal replaces in a compiled job, and the notes about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runners.rehearsal.replace_services import replace_services
from tests.runners.rehearsal.conftest import container, make_job, task

pytestmark = pytest.mark.unit


def _job(tmp_path: Path, strategy: str, processes: int | None = None) -> dict[str, Any]:
    train = {"strategy": strategy, "processes": processes, "batch_per_replica": 8}
    default = json.dumps({"train": train, "model": "cnn"})
    env = [{"name": "TPU_NAME", "value": "local"}, {"name": "A", "value": "b"}]
    return make_job(
        tmp_path,
        {"Trainer": task(container("", env=env))},
        parameters={
            "trainer_config": {"parameterType": "STRING", "defaultValue": default}
        },
    )


@pytest.mark.parametrize("strategy", ["tpu", "multi_worker", "parameter_server"])
def test_strategy_of_other_machines_becomes_one_device(
    tmp_path: Path, strategy: str
) -> None:
    """Found: the Trainer failed late, since there is no TPU and are no workers."""
    job, (note,) = replace_services(_job(tmp_path, strategy))
    assert note == (
        f"train.strategy {strategy} is not rehearsed: the Trainer trains on one "
        "device, with the batch of one replica"
    )
    config = json.loads(job["runtimeConfig"]["parameterValues"]["trainer_config"])
    assert config["train"]["strategy"] == "one_device"
    assert (config["train"]["batch_per_replica"], config["model"]) == (8, "cnn")


def test_value_of_the_job_counts_and_not_the_default(tmp_path: Path) -> None:
    job = _job(tmp_path, "auto")
    text = json.dumps({"train": {"strategy": "tpu", "processes": None}, "mine": 1})
    job["runtimeConfig"]["parameterValues"] = {"trainer_config": text}
    job, _ = replace_services(job)
    config = json.loads(job["runtimeConfig"]["parameterValues"]["trainer_config"])
    assert (config["train"]["strategy"], config["mine"]) == ("one_device", 1)


@pytest.mark.parametrize(
    ("strategy", "processes"),
    [("auto", None), ("mirrored", None), ("multi_worker", 2)],
)
def test_strategy_that_one_machine_has_stays(
    tmp_path: Path, strategy: str, processes: int | None
) -> None:
    job, notes = replace_services(_job(tmp_path, strategy, processes))
    assert (job["runtimeConfig"]["parameterValues"], notes) == ({}, [])


def test_no_task_looks_for_a_tpu_or_has_an_accelerator(tmp_path: Path) -> None:
    job = _job(tmp_path, "auto")
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    gpu = {"type": "NVIDIA_TESLA_T4", "count": "2"}
    executors["Trainer"]["container"]["resources"] = {"accelerator": gpu}
    job, (note,) = replace_services(job)
    assert note.startswith("accelerators are not rehearsed: Trainer uses this machine")
    executor = job["pipelineSpec"]["deploymentSpec"]["executors"]["Trainer"]
    assert executor["container"]["env"] == [{"name": "A", "value": "b"}]
