"""The rehearsal engine with pipelines of tiny commands, without TFX."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from runners.engine import Observer
from sluice.errors import ExitCode
from sluice.record.events import Event, NodeRetried, NodeStarted
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord
from tests.runners.rehearsal.conftest import Rehearsal, container, task

pytestmark = pytest.mark.unit


def _states(record: RunRecord) -> dict[str, str]:
    return {node.id: node.state for node in record.nodes}


def test_tasks_pass_artifacts_and_parameters_on(rehearsal: Rehearsal) -> None:
    record = rehearsal.run(
        {
            "Use": task(
                container(
                    "assert get('thing') == 'seven 7', get('thing')\n"
                    "assert of('thing')['metadata'] == {'n': 7.5}\n"
                    "assert of('thing')['type'] == {'schemaTitle': 'test.Thing'}"
                ),
                reads={"thing": "Make.thing"},
            ),
            "Make": task(
                container("put('thing', values['word'] + ' ' + values['n'], n=7.5)"),
                makes=("thing",),
                takes={
                    "word": {"componentInputParameter": "word"},
                    "n": {"runtimeValue": {"constant": "7"}},
                },
            ),
        },
        parameters={"word": {"parameterType": "STRING", "defaultValue": "six"}},
        values={"word": "seven"},
    )
    assert (record.status, record.exit_code) == ("succeeded", 0), record.error
    assert _states(record) == {"Make": "ran", "Use": "ran"}
    (uri,) = record.node("Make").outputs["thing"]
    assert "/1/tiny-" in uri and Path(uri, "data").read_text() == "seven 7"
    assert record.node("Use").inputs == {"thing": [uri]}
    assert record.artifacts[uri].producer == "Make"


def test_independent_tasks_run_at_the_same_time(rehearsal: Rehearsal) -> None:
    """Each waits for the other's file, so that one after another they would fail."""
    meet = (
        "import pathlib\n"
        "folder = pathlib.Path(values['folder'])\n"
        "(folder / values['own']).touch()\n"
        "end = time.time() + 20\n"
        "while not (folder / values['other']).exists():\n"
        "    assert time.time() < end\n"
        "    time.sleep(0.01)"
    )

    def one(own: str, other: str) -> dict[str, Any]:
        given = {"own": own, "other": other, "folder": str(rehearsal.folder)}
        takes = {k: {"runtimeValue": {"constant": v}} for k, v in given.items()}
        return task(container(meet), takes=takes)

    record = rehearsal.run({"A": one("a", "b"), "B": one("b", "a")})
    assert record.status == "succeeded", record.error


def test_environment_is_the_containers_and_not_the_shells(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_SHELL", "1")
    code = (
        "assert 'OF_THE_SHELL' not in os.environ\n"
        "assert os.environ['OF_THE_SPEC'] == 'a b'\n"
        "assert os.environ['FROM_EMULATOR'] == '1'\n"
        "assert os.listdir() == [] and os.environ['HOME'] == os.getcwd()\n"
        "import runners.rehearsal"
    )
    env = [{"name": "OF_THE_SPEC", "value": "a b"}]
    record = rehearsal.run({"Look": task(container(code, env=env))})
    assert record.status == "succeeded", record.error


def test_failed_task_stops_only_what_depends_on_it(rehearsal: Rehearsal) -> None:
    record = rehearsal.run(
        {
            "Fail": task(container("print('about to'); raise ValueError('bad luck')")),
            "After": task(container(""), after=["Fail"]),
            "Other": task(container("")),
        }
    )
    assert (record.status, record.exit_code) == ("failed", ExitCode.NODE)
    assert _states(record) == {"Fail": "failed", "After": "not_reached", "Other": "ran"}
    assert record.error and record.error.node == "Fail"
    assert record.error.message == "Fail failed: ValueError: bad luck"
    assert record.error.log and "about to" in Path(record.error.log).read_text()


def test_gate_blocks_the_run_with_its_own_exit_code(rehearsal: Rehearsal) -> None:
    code = "from sluice.errors import GateError; raise GateError('the data is bad')"
    record = rehearsal.run(
        {
            "Gate": task(container(code)),
            "After": task(container(""), after=["Gate"]),
        }
    )
    assert (record.status, record.exit_code) == ("blocked", ExitCode.DATA)
    assert _states(record) == {"Gate": "failed", "After": "blocked"}


def test_killed_task_says_by_which_signal(rehearsal: Rehearsal) -> None:
    code = "import signal; os.kill(os.getpid(), signal.SIGSEGV)"
    record = rehearsal.run({"Crash": task(container(code))})
    assert record.error and "killed by signal 11" in record.error.message


def test_missing_program_is_a_failed_task(rehearsal: Rehearsal) -> None:
    executor = {"container": {"image": "i", "command": ["no-such-program"]}}
    record = rehearsal.run({"Absent": task(executor)})
    assert record.status == "failed"
    assert record.error and "no-such-program" in record.error.log_tail[-1]


def test_condition_skips_a_task_and_what_depends_on_it(rehearsal: Rehearsal) -> None:
    of = "inputs.artifacts['thing'].artifacts[0].metadata['new']"
    record = rehearsal.run(
        {
            "Make": task(container("put('thing', new=0.0)"), makes=("thing",)),
            "OnNew": task(
                container("put('thing')"),
                reads={"thing": "Make.thing"},
                makes=("thing",),
                triggerPolicy={"condition": f"({of} == 1.0)"},
            ),
            "OnOld": task(
                container(""),
                reads={"thing": "Make.thing"},
                triggerPolicy={"condition": f"({of} == 0.0)"},
            ),
            "Then": task(container(""), reads={"thing": "OnNew.thing"}),
        }
    )
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert _states(record) == {
        "Make": "ran",
        "OnNew": "skipped",
        "OnOld": "ran",
        "Then": "skipped",
    }
    assert record.node("Then").reason == "upstream OnNew was skipped"


def test_condition_that_cannot_be_evaluated_fails_the_task(
    rehearsal: Rehearsal,
) -> None:
    policy = {"condition": "size(inputs) == 1"}
    record = rehearsal.run({"If": task(container(""), triggerPolicy=policy)})
    assert record.status == "failed"
    assert (
        record.error
        and "Call in 'size(inputs) == 1' is not understood" in record.error.message
    )


def test_failed_attempts_are_repeated_as_the_policy_says(rehearsal: Rehearsal) -> None:
    code = (
        f"path = {str(rehearsal.folder / 'count')!r}\n"
        "open(path, 'a').write('x')\n"
        "assert len(open(path).read()) == 3, 'not yet'"
    )
    policy = {"maxRetryCount": 3, "backoffDuration": "0.01s", "backoffFactor": 3.0}
    events: list[Event] = []

    class Watch(Observer):
        def on_event(self, event: Event, record: RunRecord) -> None:
            events.append(event)

    record = rehearsal.run({"Try": task(container(code), retryPolicy=policy)}, Watch())
    assert record.status == "succeeded"
    assert record.node("Try").attempts == 3
    retried = [event for event in events if isinstance(event, NodeRetried)]
    assert [event.wait_s for event in retried] == [0.01, pytest.approx(0.03)]
    assert retried[0].reason == "Try failed: AssertionError: not yet"
    assert sum(isinstance(event, NodeStarted) for event in events) == 3


def test_attempts_are_bounded(rehearsal: Rehearsal) -> None:
    policy = {"maxRetryCount": 1, "backoffDuration": "0.01s"}
    record = rehearsal.run({"Try": task(container("1/0"), retryPolicy=policy)})
    assert record.status == "failed"
    assert record.node("Try").attempts == 2


def _counted(rehearsal: Rehearsal, **fields: Any) -> dict[str, Any]:
    path = str(rehearsal.folder / "count")
    code = f"open({path!r}, 'a').write('x'); put('thing', values['n'])"
    return task(
        container(code),
        makes=("thing",),
        takes={"n": {"componentInputParameter": "n"}},
        **fields,
    )


PARAMETERS = {"n": {"parameterType": "STRING"}}


def test_cached_task_takes_the_outputs_of_an_earlier_run(rehearsal: Rehearsal) -> None:
    cached = {"cachingOptions": {"enableCache": True}}
    use = task(container("get('thing')"), reads={"thing": "Make.thing"}, **cached)
    tasks = {"Make": _counted(rehearsal, **cached), "Use": use}
    first, again, other = (
        rehearsal.run(tasks, parameters=PARAMETERS, values={"n": n}) for n in "112"
    )
    assert _states(first) == {"Make": "ran", "Use": "ran"}
    assert _states(again) == {"Make": "cached", "Use": "cached"}
    assert again.node("Make").outputs == first.node("Make").outputs
    # Another parameter is another key, and another artifact that the next task reads.
    assert _states(other) == {"Make": "ran", "Use": "ran"}
    assert (rehearsal.folder / "count").read_text() == "xx"


def test_cached_task_passes_its_output_parameters_on(rehearsal: Rehearsal) -> None:
    """Found: a task behind it failed, since it had none."""
    write = "open(made['parameters']['loss']['outputFile'], 'w').write('0.5')"
    tasks = {
        "Make": task(
            container(write),
            gives={"loss": "STRING"},
            cachingOptions={"enableCache": True},
        ),
        "Use": task(
            container("assert values['loss'] == '0.5', values"),
            takes={
                "loss": {
                    "taskOutputParameter": {
                        "producerTask": "Make",
                        "outputParameterKey": "loss",
                    }
                }
            },
        ),
    }
    states = []
    for _ in range(2):
        record = rehearsal.run(tasks)
        assert record.status == "succeeded", record.error
        states.append(_states(record))
    assert states == [{"Make": "ran", "Use": "ran"}, {"Make": "cached", "Use": "ran"}]


def test_task_is_cached_only_where_the_spec_says_so(rehearsal: Rehearsal) -> None:
    tasks = {"Make": _counted(rehearsal)}
    for _ in range(2):
        record = rehearsal.run(tasks, parameters=PARAMETERS, values={"n": "1"})
    assert _states(record) == {"Make": "ran"}


def test_failed_task_is_not_cached(rehearsal: Rehearsal) -> None:
    cached = {"cachingOptions": {"enableCache": True}}
    for _ in range(2):
        record = rehearsal.run({"Fail": task(container("1/0"), **cached)})
    assert _states(record) == {"Fail": "failed"}


def test_driver_changes_parameters_before_the_cache_lookup(
    rehearsal: Rehearsal,
) -> None:
    """As TFX's driver resolves the span, which must be part of the key."""
    span = rehearsal.folder / "span"
    driver = (
        "report = {'parameterValues': {'span': open(values['file']).read()}}\n"
        "made['artifacts']['thing']['artifacts'][0]['metadata'] = {'by': 'driver'}\n"
        "report['artifacts'] = made['artifacts']\n"
        "json.dump(report, open(made['outputFile'], 'w'))\n"
        "sys.exit()"
    )
    executor = (
        "report = json.load(open(made['outputFile']))\n"
        "put('thing', report['parameterValues']['span'])"
    )
    from tests.runners.rehearsal.conftest import command

    hook = {"preCacheCheck": {"command": command(driver), "args": ["{{$}}"]}}
    tasks = {
        "Read": task(
            container(executor, lifecycle=hook),
            makes=("thing",),
            takes={"file": {"runtimeValue": {"constant": str(span)}}},
            cachingOptions={"enableCache": True},
        )
    }
    states = []
    for value in ("7", "7", "8"):
        span.write_text(value)
        record = rehearsal.run(tasks)
        states.append(record.node("Read").state)
        (uri,) = record.node("Read").outputs["thing"]
        assert Path(uri, "data").read_text() == value
    assert states == ["ran", "cached", "ran"]


def test_resolver_finds_the_latest_artifact_of_the_pipeline(
    rehearsal: Rehearsal,
) -> None:
    """The two queries by which TFX looks up the latest blessed model."""
    blessed = (
        'schema_title="tfx.Blessing" AND state=LIVE AND metadata.blessed.number_value=1'
    )
    name = "{{$.inputs.artifacts['input'].metadata['current_model_id']}}"
    find = {"resolver": {"outputArtifactQueries": {"blessing": {"filter": blessed}}}}
    by_name = f'schema_title="test.Model" AND state=LIVE AND name="{name}"'
    model = {"resolver": {"outputArtifactQueries": {"model": {"filter": by_name}}}}
    found = (
        "items = given['artifacts']['model']['artifacts']\n"
        "put('found', items[0]['uri'] if items else 'none')"
    )
    bless = (
        "put('blessing', blessed=float(values['ok']),"
        " current_model_id=of('model')['name'])"
    )
    tasks = {
        "FindBlessing": task(find, makes={"blessing": "tfx.Blessing"}),
        "FindModel": task(
            model,
            makes={"model": "test.Model"},
            reads={"input": "FindBlessing.blessing"},
        ),
        "Compare": task(
            container(found), reads={"model": "FindModel.model"}, makes=("found",)
        ),
        "Train": task(
            container("put('model')"), makes={"model": "test.Model"}, after=["Compare"]
        ),
        "Bless": task(
            container(bless),
            reads={"model": "Train.model"},
            makes={"blessing": "tfx.Blessing"},
            takes={"ok": {"componentInputParameter": "n"}},
        ),
    }
    records = [
        rehearsal.run(tasks, parameters=PARAMETERS, values={"n": ok}) for ok in "1011"
    ]
    baselines = [
        Path(record.node("Compare").outputs["found"][0], "data").read_text()
        for record in records
    ]
    models = [record.node("Train").outputs["model"][0] for record in records]
    # The model of the second run was not blessed.
    assert baselines == ["none", models[0], models[0], models[2]]
    assert records[0].node("FindModel").reason == "found nothing"
    assert records[1].artifacts[models[0]].producer != "Train"


def test_unknown_filter_fails_the_task(rehearsal: Rehearsal) -> None:
    query = {"outputArtifactQueries": {"model": {"filter": "create_time > 7"}}}
    tasks = {"Find": task({"resolver": query}, makes=("model",))}
    record = rehearsal.run(tasks)
    assert (
        record.error and "'create_time > 7' is not understood" in record.error.message
    )


def test_importer_registers_what_exists(rehearsal: Rehearsal) -> None:
    def importer(uri: Path) -> dict[str, Any]:
        kind = {"schemaTitle": "test.Thing"}
        importer = {
            "artifactUri": {"constant": str(uri)},
            "typeSchema": kind,
            "metadata": {"span": 3.0},
        }
        return task({"importer": importer}, makes=("thing",))

    use = task(
        container("assert of('thing')['metadata'] == {'span': 3.0}"),
        reads={"thing": "Get.thing"},
    )
    record = rehearsal.run({"Get": importer(rehearsal.folder), "Use": use})
    assert record.status == "succeeded", record.error
    record = rehearsal.run({"Get": importer(rehearsal.folder / "no"), "Use": use})
    assert _states(record) == {"Get": "failed", "Use": "not_reached"}


def _with_exit_handler(code: str) -> dict[str, dict[str, Any]]:
    write = "open(values['file'], 'w').write(values['status'])"
    return {
        "Work": task(container(code)),
        "AtEnd": task(
            container(write),
            takes={
                "status": {"taskFinalStatus": {"producerTask": "tfx-dag"}},
                "file": {"componentInputParameter": "n"},
            },
            triggerPolicy={"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
        ),
    }


@pytest.mark.parametrize(("code", "state"), [("", "SUCCEEDED"), ("1/0", "FAILED")])
def test_exit_handler_runs_always_and_gets_the_final_status(
    rehearsal: Rehearsal, code: str, state: str
) -> None:
    path = rehearsal.folder / "status"
    tasks = _with_exit_handler(code)
    record = rehearsal.run(tasks, parameters=PARAMETERS, values={"n": str(path)})
    status = json.loads(path.read_text())
    assert status["state"] == state
    assert ("ZeroDivisionError" in status["error"].get("message", "")) == bool(code)
    assert record.status == ("failed" if code else "succeeded")
    assert "the exit handler AtEnd ran" in record.notes[-1]


def test_failed_exit_handler_is_a_note(rehearsal: Rehearsal) -> None:
    values = {"n": str(rehearsal.folder / "no" / "status")}
    record = rehearsal.run(_with_exit_handler(""), parameters=PARAMETERS, values=values)
    assert record.status == "succeeded"
    assert record.notes[-1].startswith("the exit handler AtEnd failed: AtEnd failed")


def test_parameter_without_a_value_stops_the_run(rehearsal: Rehearsal) -> None:
    record = rehearsal.run({"Make": _counted(rehearsal)}, parameters=PARAMETERS)
    assert (record.status, record.exit_code) == ("failed", ExitCode.USAGE)
    assert record.error and "neither a value nor a default" in record.error.message


def test_input_artifacts_have_no_type_on_kubeflow(rehearsal: Rehearsal) -> None:
    tasks = {
        "Make": task(container("put('thing')"), makes=("thing",)),
        "Use": task(
            container("assert 'type' not in of('thing')"), reads={"thing": "Make.thing"}
        ),
    }
    record = rehearsal.run(tasks, for_kubeflow=True)
    assert record.status == "succeeded", record.error
    # KFP chooses the run's id, and has it in the URIs.
    (uri,) = record.node("Make").outputs["thing"]
    assert re.search(r"/root/tiny/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/Make/", uri)


def _is_alive(pid_file: Path) -> bool:
    return psutil.pid_exists(int(pid_file.read_text()))


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, path
        time.sleep(0.02)


# Starts a grandchild in a session of its own, as Beam's workers may be.
_FAMILY = (
    "import subprocess\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "open(values['n'], 'w').write(str(child.pid))\n"
    "child.wait()"
)


def _family(rehearsal: Rehearsal, code: str = _FAMILY) -> dict[str, dict[str, Any]]:
    takes = {"n": {"componentInputParameter": "n"}}
    return {
        "Sleep": task(container(code), takes=takes),
        "After": task(container(""), after=["Sleep"]),
    }


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_signal_ends_all_processes_and_the_record_says_so(
    rehearsal: Rehearsal, number: int, code: ExitCode
) -> None:
    pid_file = rehearsal.folder / "pid"

    def interrupt() -> None:
        _wait_for(pid_file)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    record = rehearsal.run(
        _family(rehearsal), parameters=PARAMETERS, values={"n": str(pid_file)}
    )
    thread.join()
    assert (record.status, record.exit_code) == ("interrupted", code)
    assert _states(record) == {"Sleep": "interrupted", "After": "not_reached"}
    assert not _is_alive(pid_file)


def test_second_signal_kills_a_task_that_does_not_stop(rehearsal: Rehearsal) -> None:
    pid_file = rehearsal.folder / "pid"
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + _FAMILY
    stubborn = code.replace("'sleep', '600'", "'sh', '-c', 'trap : TERM; sleep 600'")

    def interrupt() -> None:
        _wait_for(pid_file)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    record = rehearsal.run(
        _family(rehearsal, stubborn),
        parameters=PARAMETERS,
        values={"n": str(pid_file)},
    )
    thread.join()
    assert record.status == "interrupted"
    assert not _is_alive(pid_file)


@pytest.mark.fault
def test_kill_of_the_rehearsal_leaves_no_process(rehearsal: Rehearsal) -> None:
    """With SIGKILL the engine cannot tidy up: its tasks' supervisors see it end."""
    pid_file = rehearsal.folder / "pid"
    plan = rehearsal.begin(
        _family(rehearsal), parameters=PARAMETERS, values={"n": str(pid_file)}
    )
    child = os.fork()
    if child == 0:
        from runners.rehearsal.describe import Describer
        from runners.rehearsal.engine import RehearsalEngine
        from sluice.project import own_root

        describer = Describer(own_root(), {}, rehearsal.folder / "describe.log")
        RehearsalEngine(rehearsal.containers, describer).run(plan, Observer())
        os._exit(0)
    _wait_for(pid_file)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    end = time.monotonic() + 10
    while _is_alive(pid_file):
        assert time.monotonic() < end
        time.sleep(0.02)
    # A later command completes its record, as that of a local run.
    events = list(Journal(plan.run_dir).events())
    assert isinstance(events[-1], NodeStarted)
