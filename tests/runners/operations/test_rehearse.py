"""The operation ``rehearse`` with compiled files of tiny commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.graph.locations import LOCAL_BEAM_ARGS
from runners.cloud.kubeflow_spec import ENTRYPOINT
from runners.cloud.trainer_job import TRAINING
from runners.operations.lineage import LineageRequest, lineage
from runners.operations.rehearse import RehearseRequest, rehearse
from sluice.errors import ExitCode, UsageError
from tests.runners.rehearsal.conftest import container, make_job, task
from tests.runners.rehearsal.fake_docker import FakeDocker

pytestmark = pytest.mark.cloud

_STORAGE = "from sluice.storage.storage import storage_for\n"
# Instead of the local files of the prelude.
_WRITE = (
    _STORAGE + "artifact = made['artifacts']['thing']['artifacts'][0]\n"
    "uri = artifact['uri'] + '/data'\n"
    "text = storage_for(uri).read('gs://bucket/data/in').decode()\n"
    "storage_for(uri).write_atomically(uri, (values['n'] + text).encode())\n"
)
_REPORT = (
    "report = json.dumps({'artifacts': made['artifacts']}).encode()\n"
    "storage_for(uri).write_atomically(made['outputFile'], report)\n"
    "sys.exit()"
)
_READ = (
    _STORAGE + "uri = of('thing')['uri'] + '/data'\n"
    "print('read', storage_for(uri).read(uri).decode())\n"
    "sys.exit()"
)


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiled pipeline that reads and writes gs://, and a project around it."""
    tasks = {
        "Make": task(
            container(_WRITE + _REPORT),
            makes=("thing",),
            takes={"n": {"componentInputParameter": "n"}},
            cachingOptions={"enableCache": True},
        ),
        "Use": task(container(_READ), reads={"thing": "Make.thing"}),
    }
    declared = {
        "n": {"parameterType": "STRING"},
        "steps": {"parameterType": "NUMBER_INTEGER", "isOptional": True},
        "factors": {"parameterType": "LIST", "isOptional": True},
    }
    job: dict[str, Any] = make_job(tmp_path, tasks, parameters=declared)
    job["runtimeConfig"]["gcsOutputDirectory"] = "gs://bucket/root"
    (tmp_path / "configs").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in").write_text(" from the laptop")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    return path


def _request(path: Path, **options: Any) -> RehearseRequest:
    given: dict[str, Any] = {
        "parameters": ("n=7",),
        "uploads": (f"{path.parent / 'data'}=gs://bucket/data",),
    }
    return RehearseRequest(name=str(path), **{**given, **options})


def test_compiled_file_reads_and_writes_the_emulated_bucket(compiled: Path) -> None:
    found = rehearse(_request(compiled, rounds=2))
    first, second = found.records
    assert found.exit_code == 0, first.error
    assert [node.state for node in first.nodes] == ["ran", "ran"]
    # The second round is in the same service.
    assert [node.state for node in second.nodes] == ["cached", "ran"]
    (uri,) = first.node("Make").outputs["thing"]
    assert uri.startswith("gs://bucket/root/1/tiny-")
    runs = compiled.parent / "workspace" / "tiny" / "runs"
    log = runs / second.run_id / "logs" / "Use.log"
    assert "read 7 from the laptop" in log.read_text()
    assert second.tags == {"rehearsal": "round 2"}
    assert second.report_uri and Path(second.report_uri).exists()


def test_parameters_have_the_types_that_the_pipeline_declares(compiled: Path) -> None:
    """Found: all were text, also a number of steps."""
    given = ("n=7", "steps=30", "factors=[0.5, 2]")
    (record,) = rehearse(_request(compiled, parameters=given)).records
    runs = compiled.parent / "workspace" / "tiny" / "runs"
    job = json.loads((runs / record.run_id / "spec.json").read_text())
    assert job["runtimeConfig"]["parameterValues"] == {
        "n": "7",
        "steps": 30,
        "factors": [0.5, 2],
    }


def test_tasks_in_an_image_read_and_write_the_emulated_bucket(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = FakeDocker(tmp_path / "docker", monkeypatch)
    (record,) = rehearse(_request(compiled, image="image:1")).records
    assert record.status == "succeeded", record.error
    make, use = docker.calls()
    assert docker.name(make).startswith("sluice-make-")
    given = dict(item.split("=", 1) for item in docker.values(use, "-e"))
    assert given["STORAGE_EMULATOR_HOST"] == given["https_proxy"]
    for name in ("CURL_CA_BUNDLE", "GOOGLE_APPLICATION_CREDENTIALS"):
        folder = Path(given[name]).parent
        assert docker.values(use, "-v") == [f"{folder}:{folder}:ro"]


_CONFIG = """
version: 1
name: tiny
data: {dir: data, splits: {train: "train*", eval: "eval*"}}
label: {feature: label}
features: {fare: {kind: numeric}}
model: dense
evaluate: {metrics: [ExampleCount]}
"""


def test_lineage_of_a_rehearsed_artifact(compiled: Path) -> None:
    """Found: the artifacts of a rehearsal were unknown, and their ids began at 1."""
    (compiled.parent / "configs" / "tiny.yaml").write_text(_CONFIG)
    for _ in range(2):
        (record,) = rehearse(_request(compiled)).records
    (uri,) = record.node("Make").outputs["thing"]
    traced = lineage(LineageRequest(name="tiny", reference=uri)).to_dict()
    assert traced["read_as"].startswith("artifact 1")
    text = json.dumps(traced)
    assert record.run_id in text and uri in text
    with pytest.raises(UsageError, match="artifact 1\\b|no artifact"):
        lineage(LineageRequest(name="tiny", reference="artifact:1"))


def test_each_rehearsal_begins_with_an_empty_service(compiled: Path) -> None:
    for _ in range(2):
        (record,) = rehearse(_request(compiled)).records
    assert record.node("Make").state == "ran"


def test_failed_round_is_the_last(compiled: Path) -> None:
    found = rehearse(_request(compiled, rounds=2, uploads=()))
    assert len(found.records) == 1
    assert found.exit_code == ExitCode.NODE
    assert "gs://bucket/data/in" in str(found.records[0].error)


def test_custom_job_of_the_trainer_runs_in_its_task(compiled: Path) -> None:
    job = json.loads(compiled.read_text())
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    executors["Use"]["container"]["args"] += [
        "--executor_class_path",
        TRAINING.executor,
    ]
    compiled.write_text(json.dumps(job))
    (record,) = rehearse(_request(compiled)).records
    assert any("custom job is not rehearsed" in note for note in record.notes)
    run_dir = compiled.parent / "workspace" / "tiny" / "runs" / record.run_id
    assert TRAINING.executor not in (run_dir / "spec.json").read_text()


def test_other_services_are_left_out_with_a_note(compiled: Path) -> None:
    """Found: they were called, and refused by the emulator's proxy after many tries."""
    job = json.loads(compiled.read_text())
    spec = job["pipelineSpec"]
    container_ = spec["deploymentSpec"]["executors"]["Use"]["container"]
    container_["args"] += ["--runner=DataflowRunner", "--project=mine"]
    tasks = spec["root"]["dag"]["tasks"]
    destinations = {"registry": {"project": "mine"}, "endpoint": {"name": "e"}}
    constant = json.dumps({**destinations, "kept": 1})
    given = {"custom_config": {"runtimeValue": {"constant": constant}}}
    tasks["Pusher"] = json.loads(json.dumps(tasks["Use"]))
    tasks["Pusher"]["inputs"]["parameters"] = given
    spec["components"]["Use"]["inputDefinitions"]["parameters"] = {
        "custom_config": {"parameterType": "STRING", "isOptional": True}
    }
    compiled.write_text(json.dumps(job))
    (record,) = rehearse(_request(compiled)).records
    assert record.status == "succeeded", record.error
    assert any("Dataflow is not rehearsed: Use" in note for note in record.notes)
    assert any("registry and endpoint are not" in note for note in record.notes)
    run_dir = compiled.parent / "workspace" / "tiny" / "runs" / record.run_id
    ran = json.loads((run_dir / "spec.json").read_text())["pipelineSpec"]
    args = ran["deploymentSpec"]["executors"]["Use"]["container"]["args"]
    assert args == ["{{$}}", *LOCAL_BEAM_ARGS]
    parameters = ran["root"]["dag"]["tasks"]["Pusher"]["inputs"]["parameters"]
    value = parameters["custom_config"]["runtimeValue"]["constant"]
    assert json.loads(value) == {"kept": 1}


def test_file_for_kubeflow_is_rehearsed_as_there(compiled: Path) -> None:
    """Found: it got Vertex AI's typed artifacts, drivers and addresses."""
    job = json.loads(compiled.read_text())
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    # Ends at once, without its arguments.
    executors["Use"]["container"] = {"image": "i", "command": ENTRYPOINT}
    compiled.write_text(json.dumps(job))
    (record,) = rehearse(_request(compiled)).records
    (uri,) = record.node("Make").outputs["thing"]
    assert uri.startswith("gs://bucket/root/tiny/")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uploads": ("nowhere=gs://bucket/x",)}, "cannot be uploaded"),
        ({"uploads": ("data=/tmp/x",)}, "cannot be uploaded"),
        ({"parameters": ("n",)}, "not a parameter"),
        ({"parameters": ("m=7",)}, "the pipeline has no parameter 'm'"),
        ({"parameters": ("steps=many",)}, "no value of the parameter"),
        ({"parameters": ("steps=1.5",)}, "no value of the parameter"),
        ({"parameters": ("steps=true",)}, "no value of the parameter"),
    ],
)
def test_wrong_requests(compiled: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rehearse(_request(compiled, **options))


def test_data_in_a_bucket_is_refused() -> None:
    request = RehearseRequest(name="digits", overrides=("data.dir=gs://real/data",))
    with pytest.raises(UsageError, match="it reaches no real bucket") as caught:
        rehearse(request)
    assert caught.value.hint == "--set data.dir=DIR"
