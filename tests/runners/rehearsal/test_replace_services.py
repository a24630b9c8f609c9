"""What a rehearsal replaces in a compiled job, and the notes about it."""

import json

import pytest

from runners.rehearsal.replace_services import replace_services

pytestmark = pytest.mark.unit


def a_job(strategy="auto", processes=None, precision="float32", **container):
    """Returns a job with a Trainer, whose config is a parameter, and a Pusher."""
    train = {
        "strategy": strategy,
        "processes": processes,
        "precision": precision,
        "batch_per_replica": 8,
    }
    config = json.dumps({"train": train, "model": "cnn"})
    parameter = {"parameterType": "STRING", "defaultValue": config}
    pushes = {"runtimeValue": {"constant": '{"registry": {}, "labels": {"a": "b"}}'}}
    return {
        "pipelineSpec": {
            "root": {
                "dag": {
                    "tasks": {
                        "Pusher": {"inputs": {"parameters": {"custom_config": pushes}}}
                    }
                },
                "inputDefinitions": {"parameters": {"trainer_config": parameter}},
            },
            "components": {"Trainer": {"executorLabel": "Trainer_executor"}},
            "deploymentSpec": {
                "executors": {"Trainer_executor": {"container": container}}
            },
        },
        "runtimeConfig": {"parameterValues": {}},
    }


@pytest.mark.parametrize("strategy", ["tpu", "multi_worker", "parameter_server"])
def test_strategy_of_other_machines_becomes_one_device(strategy):
    """Found: the Trainer failed late, since there is no TPU and are no workers."""
    job, notes = replace_services(a_job(strategy))
    assert any(f"train.strategy {strategy} is not rehearsed" in x for x in notes)
    config = json.loads(job["runtimeConfig"]["parameterValues"]["trainer_config"])
    assert config["train"]["strategy"] == "one_device"
    assert (config["train"]["batch_per_replica"], config["model"]) == (8, "cnn")


def test_float16_becomes_float32():
    """Found: on a CPU the training of digits took ten minutes."""
    job, notes = replace_services(a_job("mirrored", precision="mixed_float16"))
    assert any("train.precision mixed_float16 is not rehearsed" in x for x in notes)
    config = json.loads(job["runtimeConfig"]["parameterValues"]["trainer_config"])
    train = config["train"]
    assert (train["strategy"], train["precision"]) == ("mirrored", "float32")


@pytest.mark.parametrize(
    ("strategy", "processes"), [("auto", None), ("mirrored", None), ("multi_worker", 2)]
)
def test_strategy_that_one_machine_has_stays(strategy, processes):
    job, notes = replace_services(a_job(strategy, processes))
    assert "trainer_config" not in job["runtimeConfig"]["parameterValues"]
    assert not any("strategy" in note for note in notes)


def test_what_only_the_service_has_is_replaced_with_a_note():
    env = [{"name": "TPU_NAME", "value": "local"}, {"name": "A", "value": "b"}]
    args = ["--executor_class_path", "x.Executor", "--runner=DataflowRunner", "--p=q"]
    resources = {"accelerator": {"type": "nvidia"}}
    job, notes = replace_services(a_job(env=env, args=args, resources=resources))
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    container = executors["Trainer_executor"]["container"]
    assert container["env"] == env[1:]
    assert container["args"][:2] == args[:2] and args[2] not in container["args"]
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    given = tasks["Pusher"]["inputs"]["parameters"]["custom_config"]["runtimeValue"]
    assert json.loads(given["constant"]) == {"labels": {"a": "b"}}
    for what in ("Dataflow", "accelerators", "registry and endpoint"):
        assert any(note.startswith(what) for note in notes)
