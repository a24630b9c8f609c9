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
import time
from pathlib import Path
from typing import Any

from misbehaving_component import FILE
from misbehaving_component import Misbehave as Misbehave
from tfx.dsl.component.experimental.annotations import (
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
    base_executor,
    executor_spec,
)
from tfx.dsl.components.common.resolver import ResolverStrategy
from tfx.proto.orchestration import execution_result_pb2
from tfx.types import component_spec
from tfx.types.standard_artifacts import Examples

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


class DrivenSpec(component_spec.ComponentSpec):
    PARAMETERS = {
        "trace": component_spec.ExecutionParameter(type=str),
        "text": component_spec.ExecutionParameter(type=str),
    }
    INPUTS: dict[str, Any] = {}
    OUTPUTS = {"out": component_spec.ChannelParameter(type=Examples)}


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
