"""A job of containers that are lines of Python: inputs, conditions, failures, stops."""

import os
import signal

import psutil
import pytest

from runners.cloud.spec import read_spec
from runners.engine import Observer
from runners.rehearsal.run_job import Rehearsal, run_job
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

READ = "import json, os, sys; given = json.loads(sys.argv[1]); "
# Reports that the model is twice as good as the last one.
TRAIN = READ + (
    "old = given['inputs']['artifacts'].get('base', {}).get('artifacts', []); "
    "n = 2 * old[0]['metadata']['n'] if old else 1; "
    "model = given['outputs']['artifacts']['model']['artifacts'][0]; "
    "assert os.path.isdir(model['uri']) and not os.listdir('.'); "
    "model['metadata']['n'] = n; "
    "report = {'artifacts': given['outputs']['artifacts']}; "
    "json.dump(report, open(given['outputs']['outputFile'], 'w'))"
)
MODEL = {"artifactType": {"instanceSchema": "title: tfx.Model\ntype: object\n"}}


def a_task(code=TRAIN, base=None, condition=None, after=(), executor=None, env=()):
    """Returns a task's component, executor and place in the graph."""
    inputs = {}
    if base:
        made = {"producerTask": base, "outputArtifactKey": "model"}
        inputs = {"artifacts": {"base": {"taskOutputArtifact": made}}}
    command = ["python", "-c", code]
    container = {"image": "i", "command": command, "args": ["{{$}}"], "env": list(env)}
    return {
        "task": {
            "inputs": inputs,
            "dependentTasks": list(after) + [base] * bool(base),
            "triggerPolicy": {"condition": condition} if condition else {},
        },
        "executor": executor or {"container": container},
    }


def rehearse(tmp_path, observer=None, is_kubeflow=False, **tasks):
    """Runs a job of these tasks."""
    job = {
        "pipelineSpec": {
            "pipelineInfo": {"name": "toy"},
            "root": {
                "dag": {
                    "tasks": {
                        name: {"componentRef": {"name": name}, **task["task"]}
                        for name, task in tasks.items()
                    }
                }
            },
            "components": {
                name: {
                    "executorLabel": name,
                    "outputDefinitions": {"artifacts": {"model": MODEL}},
                }
                for name in tasks
            },
            "deploymentSpec": {
                "executors": {name: task["executor"] for name, task in tasks.items()}
            },
        },
        "runtimeConfig": {"gcsOutputDirectory": str(tmp_path / "root")},
    }
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    record = RunRecord("r1", "toy")
    run_job(
        Rehearsal(
            read_spec(job),
            record,
            run_dir,
            tmp_path,
            is_kubeflow,
        ),
        observer or Observer(),
    )
    assert RunRecord.load(run_dir) == record
    return record


def states(record):
    return {node.id: node.state for node in record.nodes}


def properties(record, name):
    (uri,) = record.node(name).outputs["model"]
    return uri, record.artifacts[uri]


def test_outputs_become_inputs_and_nothing_of_the_shell_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("ONLY_MINE", "1")
    look = "assert 'ONLY_MINE' not in os.environ and os.environ['GIVEN'] == 'r1'; "
    env = [{"name": "GIVEN", "value": "{{$.pipeline_job_name}}"}]
    check = look + "assert given['inputs']['artifacts']['base']['artifacts'][0]"
    is_two = "['metadata']['n'] == 2"
    record = rehearse(
        tmp_path,
        First=a_task(),
        Second=a_task(base="First"),
        Third=a_task(READ + check + is_two, base="Second", env=env),
    )
    assert states(record) == dict.fromkeys(("First", "Second", "Third"), "ran")
    assert (record.status, record.exit_code) == ("succeeded", 0)
    (uri,) = record.node("First").outputs["model"]
    assert uri == str(tmp_path / "root/r1/First/model")
    assert record.node("Second").inputs["base"] == [uri]
    assert record.artifacts[uri].type == "Model"


@pytest.mark.parametrize("is_kubeflow", [False, True])
def test_kubeflow_passes_inputs_without_their_types(tmp_path, is_kubeflow):
    look = "item = given['inputs']['artifacts']['base']['artifacts'][0]; "
    code = f"{READ}{look}assert bool(item['type']) is not {is_kubeflow}"
    record = rehearse(
        tmp_path, is_kubeflow=is_kubeflow, First=a_task(), Second=a_task(code, "First")
    )
    assert record.status == "succeeded", record.error


N = "inputs.artifacts['base'].artifacts[0].metadata['n']"


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        (f"!({N} == 1.0)", "skipped"),
        (f"({N} != 1.0) || ({N} > 0.0)", "ran"),
        (f"({N} == 1.0) && ({N} > 1.0)", "skipped"),
        ("inputs.artifacts['other'].artifacts[0].uri == ''", "failed"),
    ],
)
def test_condition(tmp_path, condition, state):
    after = {"ran": "ran", "skipped": "skipped", "failed": "not_reached"}[state]
    record = rehearse(
        tmp_path,
        First=a_task(),
        Second=a_task(base="First", condition=condition),
        Third=a_task(base="Second"),
    )
    assert states(record) == {"First": "ran", "Second": state, "Third": after}
    assert (condition in (record.node("Second").reason or "")) == (state != "ran")


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "message"),
    [
        ("from sluice.errors import *; raise GateError('bad')", "blocked", 3, "bad"),
        ("raise ValueError('of the code')", "failed", 7, "ValueError: of the code"),
        ("import os; os.kill(os.getpid(), 9)", "failed", 7, "killed by signal 9"),
    ],
)
def test_failure_is_explained_and_stops_what_follows(
    tmp_path, code, status, exit_code, message
):
    record = rehearse(
        tmp_path,
        First=a_task(code),
        Second=a_task(after=["First"]),
        Beside=a_task(),
    )
    assert (record.status, record.exit_code) == (status, exit_code)
    assert message in record.error.message
    assert "First.log" in record.error.log
    left = "blocked" if status == "blocked" else "not_reached"
    assert states(record) == {"First": "failed", "Second": left, "Beside": "ran"}


class _Interrupting(Observer):
    """Sends Ctrl-C to the rehearsal while its first task sleeps."""

    def __init__(self):
        self.sent = False

    def on_tick(self):
        if not self.sent:
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_the_run_as_interrupted_and_leaves_no_process(tmp_path):
    before = set(psutil.Process(os.getpid()).children(recursive=True))
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    record = rehearse(
        tmp_path,
        _Interrupting(),
        First=a_task(code + "time.sleep(60)"),
        Second=a_task(base="First"),
    )
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert states(record) == {"First": "interrupted", "Second": "not_reached"}
    assert set(psutil.Process(os.getpid()).children(recursive=True)) <= before


def test_importers_import_and_resolvers_find_nothing(tmp_path):
    importer = {"artifactUri": {"constant": "/given"}, "typeSchema": {}}
    count = "base = given['inputs']['artifacts']['base']['artifacts']; "
    record = rehearse(
        tmp_path,
        Importer=a_task(executor={"importer": importer}),
        Resolver=a_task(executor={"resolver": {}}),
        Imported=a_task(f"{READ}{count}assert base[0]['uri'] == '/given'", "Importer"),
        Resolved=a_task(f"{READ}{count}assert base == []", "Resolver"),
    )
    assert set(states(record).values()) == {"ran"}, record.error
    assert "looks up no artifacts" in record.node("Resolver").reason
