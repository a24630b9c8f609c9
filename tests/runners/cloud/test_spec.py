"""Reading of compiled pipelines through KFP's protos."""

import pytest

from runners.cloud.spec import TaskOutput, read_spec, type_title
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


def job():
    """Returns a job as TFX compiles it: an exit handler beside a nested graph."""
    read = {
        "componentRef": {"name": "Read"},
        "inputs": {"parameters": {"spans": {"componentInputParameter": "spans"}}},
    }
    examples = {"producerTask": "Read", "outputArtifactKey": "examples"}
    train = {
        "componentRef": {"name": "Train"},
        "dependentTasks": ["Gate"],
        "inputs": {
            "artifacts": {"examples": {"taskOutputArtifact": examples}},
            "parameters": {"steps": {"runtimeValue": {"constant": 5}}},
        },
        "triggerPolicy": {"condition": "1.0 == 1.0"},
    }
    gate = {"componentRef": {"name": "Gate"}, "dependentTasks": ["Read"]}
    report = {
        "componentRef": {"name": "Report"},
        "dependentTasks": ["tfx-dag"],
        "inputs": {
            "parameters": {"final_status": {"taskFinalStatus": {}}},
        },
        "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
    }
    nested = {
        "componentRef": {"name": "tfx-dag"},
        "inputs": {"parameters": {"spans": {"componentInputParameter": "days"}}},
    }
    schema = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}
    made = {"artifacts": {"examples": {"artifactType": schema}}}
    gate_path = "components.data_gate.Executor"
    executors = {
        "Read": {"importer": {"artifactUri": {"runtimeParameter": "spans"}}},
        "Train": {"container": {"image": "image", "args": ["{{$}}"]}},
        "Gate": {"container": {"args": ["--executor_class_path", gate_path]}},
        "Report": {"container": {}},
    }
    components: dict = {name: {"executorLabel": name} for name in executors}
    components["Read"]["outputDefinitions"] = made
    tasks = {"Train": train, "Gate": gate, "Read": read}
    components["tfx-dag"] = {"dag": {"tasks": tasks}}
    days = {"parameterType": "STRING", "defaultValue": "1"}
    return {
        "runtimeConfig": {"gcsOutputDirectory": "gs://bucket/root"},
        "pipelineSpec": {
            "pipelineInfo": {"name": "digits"},
            "root": {
                "inputDefinitions": {"parameters": {"days": days}},
                "dag": {"tasks": {"Report": report, "tfx-dag": nested}},
            },
            "components": components,
            "deploymentSpec": {"executors": executors},
        },
    }


def nested_tasks(job):
    return job["pipelineSpec"]["components"]["tfx-dag"]["dag"]["tasks"]


def test_tasks_in_topological_order_with_resolved_inputs():
    spec = read_spec(job())
    assert spec.root == "gs://bucket/root"
    assert {task.id: task.upstream for task in spec.tasks} == {
        "Read": (),
        "Gate": ("Read",),
        "Train": ("Gate", "Read"),
        "Report": (),
    }
    read, gate, train, report = spec.tasks
    assert read.parameters == {"spans": "1"} and read.imported_uri == "1"
    (made,) = read.component.output_definitions.artifacts.values()
    schema = {"instanceSchema": made.artifact_type.instance_schema}
    assert type_title(schema) == "tfx.Examples"
    assert train.artifacts == {"examples": TaskOutput("Read", "examples")}
    assert train.parameters == {"steps": 5.0}
    assert train.condition == "1.0 == 1.0"
    assert train.executor.container.image == "image"
    assert gate.kind.gate and not train.kind.gate
    assert report.is_exit_handler and report.parameters == {}
    assert [node.id for node in spec.graph()] == ["Read", "Gate", "Train"]


def test_parameters_are_the_given_ones_or_their_defaults():
    given = job()
    assert read_spec(given).tasks[0].parameters == {"spans": "1"}
    given["runtimeConfig"]["parameterValues"] = {"days": "2"}
    assert read_spec(given).tasks[0].parameters == {"spans": "2"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda job: job.pop("pipelineSpec"), "pipelineSpec"),
        (lambda job: job["pipelineSpec"].update(invented=1), "invented"),
        (lambda job: nested_tasks(job).pop("Read"), "Read"),
    ],
    ids=["no pipeline", "an unknown field", "a missing task"],
)
def test_what_is_no_pipeline_of_kfp_is_refused(change, message):
    given = job()
    change(given)
    with pytest.raises(ConfigError, match=message):
        read_spec(given)
