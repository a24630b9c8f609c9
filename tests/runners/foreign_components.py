"""Components of foreign TFX pipelines.

Those that take ``trace`` append lines to a file of that name and ``.trace``, which is
how a test knows that they ran, when, and with what. (The name alone must be no file,
since the cache key has the content of files that properties name.) The clock is the
machine's own, the same in all processes.
"""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

import json
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apache_beam as beam
from misbehaving_component import FILE, OUTLIVES_S
from misbehaving_component import Misbehave as Misbehave
from tfx.dsl.component.experimental.annotations import (
    BeamComponentParameter,
    InputArtifact,
    OutputArtifact,
    OutputDict,
    Parameter,
)
from tfx.dsl.component.experimental.container_component import (
    create_container_component,
)
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base import (
    base_component,
    base_driver,
    base_executor,
    executor_spec,
)
from tfx.dsl.components.common.resolver import ResolverStrategy
from tfx.orchestration.portable import base_driver as portable_base_driver
from tfx.proto.orchestration import driver_output_pb2, execution_result_pb2
from tfx.types import component_spec
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from sluice.errors import GateError


def note(trace: str, **facts: Any) -> None:
    """Appends one line, whole even if several processes do so at once."""
    line = json.dumps({"at": time.monotonic(), **facts}) + "\n"
    with open(f"{trace}.trace", "ab", buffering=0) as file:
        file.write(line.encode())


def notes(trace: str) -> list[dict[str, Any]]:
    """Returns the lines so far."""
    path = Path(f"{trace}.trace")
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


@component
def Make(
    out: OutputArtifact[Examples],
    trace: Parameter[str],
    text: Parameter[str] = "hello",
):
    note(trace, made=text)
    Path(out.uri, FILE).write_text(text)
    out.split_names = json.dumps(["train", "eval"])


@component
def Copy(
    data: InputArtifact[Examples], out: OutputArtifact[Examples], trace: Parameter[str]
):
    note(trace, begin=True)
    text = Path(data.uri, FILE).read_text()
    Path(out.uri, FILE).write_text(text + "'")
    note(trace, end=True)


@component
def Read(data: InputArtifact[Examples], trace: Parameter[str]):
    note(trace, read=Path(data.uri, FILE).read_text())


@component
def ReadIfThere(trace: Parameter[str], data: InputArtifact[Examples] = None):
    note(trace, read=None if data is None else Path(data.uri, FILE).read_text())


_Values = OutputDict(length=int, half=float, text=str, long=bool, letters=list[str])


@component
def Measure(data: InputArtifact[Examples]) -> _Values:  # type: ignore[valid-type]
    text = Path(data.uri, FILE).read_text()
    return {
        "length": len(text),
        "half": len(text) / 2,
        "text": text,
        "long": len(text) > 100,
        "letters": sorted(set(text)),
    }


@component
def TakeValues(
    trace: Parameter[str],
    length: int,
    half: float,
    text: str,
    long: bool,
    letters: list[str],
    missing: str = "a default",
):
    note(trace, values=[length, half, text, long, letters, missing])


@component
def TakeParameters(
    trace: Parameter[str],
    text: Parameter[str] = "",
    number: Parameter[int] = 0,
):
    note(trace, text=text, number=number)


@component
def Raise(out: OutputArtifact[Examples], message: Parameter[str]):
    Path(out.uri, FILE).touch()
    raise ValueError(message)


@component
def Train(model: OutputArtifact[Model], text: Parameter[str] = "a model"):
    folder = Path(model.uri, "Format-Serving")
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text(text)
    (folder / "variables" / "variables.index").write_text(text)


@component
def Bless(
    model: InputArtifact[Model],
    blessing: OutputArtifact[ModelBlessing],
    good: Parameter[int],
    examples: InputArtifact[Examples] = None,
):
    blessing.set_int_custom_property("blessed", good)
    blessing.set_int_custom_property("current_model_id", model.id)
    blessing.set_string_custom_property("current_model_uri", model.uri)
    Path(blessing.uri, "BLESSED" if good else "NOT_BLESSED").touch()


@component
def Compare(
    trace: Parameter[str],
    latest: InputArtifact[Model],
    baseline: InputArtifact[Model] = None,
):
    note(trace, latest=latest.id, baseline=baseline.id if baseline else None)


@component
def PushIfBlessed(
    trace: Parameter[str],
    model: InputArtifact[Model],
    blessing: InputArtifact[ModelBlessing] = None,
):
    """As TFX's Pusher: without a blessing nobody has judged, and it pushes."""
    note(trace, model=model.id, judged=blessing is not None)


@component
def Meet(
    out: OutputArtifact[Examples],
    place: Parameter[str],
    name: Parameter[str],
    others: Parameter[int],
    wait_s: Parameter[float],
    before: InputArtifact[Examples] = None,
):
    """Waits until as many nodes as there should be have come to ``place``."""
    note(place, name=name, begin=True)
    Path(place).mkdir(exist_ok=True)
    Path(place, name).touch()
    deadline = time.monotonic() + wait_s
    while (there := len(os.listdir(place))) < others and time.monotonic() < deadline:
        time.sleep(0.01)
    Path(out.uri, FILE).write_text(name)
    note(place, name=name, end=True, met=there >= others)


def _tcp_servers() -> list[int]:
    """Returns the TCP ports on which this process listens."""
    own = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of this listing
            own.add(os.readlink(path).removeprefix("socket:").strip("[]"))
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/self/net", table).read_text().splitlines()[1:]
    ]
    return [
        int(address.rpartition(":")[2], 16)
        for _, address, _, state, *_, inode in (row[:10] for row in rows)
        if state == "0A" and inode in own
    ]


@component
def Listen(trace: Parameter[str]):
    with socket.create_server(("localhost", 0)) as server:
        note(trace, port=server.getsockname()[1], servers=_tcp_servers())
    note(trace, servers=_tcp_servers())


@component(use_beam=True)
def ListenInBeam(
    trace: Parameter[str], pipeline: BeamComponentParameter[beam.Pipeline] = None
):
    with pipeline as opened:
        numbers = opened | beam.Create([1])
        numbers | beam.Map(lambda _: note(trace, servers=_tcp_servers()))


@component
def ForeignGate(trace: Parameter[str]):
    note(trace, judged=True)
    raise GateError("not good enough")


@component
def DieAtFirst(out: OutputArtifact[Examples], trace: Parameter[str]):
    """Is killed with half of its output written, then does its work."""
    found = sorted(os.listdir(out.uri))
    checkpoints = Path(os.environ["SLUICE_CHECKPOINT_DIR"])
    checkpoints.mkdir(parents=True, exist_ok=True)
    note(trace, found=found, checkpoints=sorted(os.listdir(checkpoints)))
    (checkpoints / "ckpt-1").touch()
    Path(out.uri, f"part-{len(notes(trace))}").touch()
    if len(notes(trace)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@component
def SleepAtFirst(trace: Parameter[str]):
    note(trace, begin=True)
    if len(notes(trace)) == 1:
        time.sleep(OUTLIVES_S)


class DrivenExecutor(base_executor.BaseExecutor):
    """Notes what its driver has decided."""

    def Do(self, input_dict, output_dict, exec_properties):
        (out,) = output_dict["out"]
        note(
            exec_properties["trace"],
            text=exec_properties["text"],
            span=out.get_int_custom_property("span"),
        )


class Driver(base_driver.BaseDriver, portable_base_driver.BaseDriver):
    """Changes a property and marks the output."""

    def __init__(self, metadata_handle):
        super().__init__(metadata_handle)

    def run(self, execution_info):
        result = driver_output_pb2.DriverOutput()
        result.exec_properties["text"].string_value = "from the driver"
        result.exec_properties["trace"].string_value = execution_info.exec_properties[
            "trace"
        ]
        for artifact in execution_info.output_dict["out"]:
            artifact.set_int_custom_property("span", 7)
            result.output_artifacts["out"].artifacts.append(artifact.mlmd_artifact)
        return result


class DrivenSpec(component_spec.ComponentSpec):
    PARAMETERS = {
        "trace": component_spec.ExecutionParameter(type=str),
        "text": component_spec.ExecutionParameter(type=str),
    }
    INPUTS: dict[str, Any] = {}
    OUTPUTS = {"out": component_spec.ChannelParameter(type=Examples)}


class Driven(base_component.BaseComponent):
    """A component with a driver of its own."""

    SPEC_CLASS = DrivenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(DrivenExecutor)
    DRIVER_CLASS = Driver


class ReportingExecutor(base_executor.BaseExecutor):
    """Does not raise, and reports an error in its output."""

    def Do(self, input_dict, output_dict, exec_properties):
        return execution_result_pb2.ExecutorOutput(
            execution_result=execution_result_pb2.ExecutionResult(
                code=9, result_message="the executor has its reasons"
            )
        )


class Reporting(base_component.BaseComponent):
    """A component whose executor fails without raising."""

    SPEC_CLASS = DrivenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(ReportingExecutor)


class BrokenStrategy(ResolverStrategy):
    """A strategy of a resolver that raises."""

    def resolve_artifacts(self, store, input_dict):
        raise ValueError("the strategy is broken")


InContainer = create_container_component(
    name="InContainer",
    image="nowhere.invalid/nothing",
    command=["true"],
    outputs={"out": Examples},
)
