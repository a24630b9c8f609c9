"""What a task is started with: its ``ExecutorInput``, placeholders and cache key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runners.cloud.spec import (
    Command,
    Constant,
    Container,
    FinalStatus,
    PipelineParameter,
    Spec,
    Task,
    TaskOutput,
    Value,
)
from runners.rehearsal.metadata_store import (
    MetadataStore,
    Outputs,
    StoredArtifact,
    TaskResult,
)
from sluice.errors import NodeError, UsageError
from sluice.storage import digest

_PLACEHOLDER = re.compile(r"\{\{\$(?P<path>[^{}]*)\}\}")
_STEP = re.compile(r"\.(\w+)|\['([^']*)'\]")


@dataclass(frozen=True)
class Job:
    """The job that the tasks belong to.

    Attributes:
      spec: the compiled pipeline.
      id: the job's id.
      parameters: the values of the pipeline's parameters.
      for_kubeflow: whether Kubeflow Pipelines runs it: input artifacts come without
        their types, and outputs are elsewhere.
      final_status: how the tasks have ended, for the exit handler.
    """

    spec: Spec
    id: str
    parameters: Mapping[str, Any]
    for_kubeflow: bool = False
    final_status: str = ""

    @property
    def variables(self) -> dict[str, Any]:
        """The values of placeholders that any constant may contain."""
        return {
            "pipeline_job_name": self.id,
            "pipeline_job_uuid": self.id,
            "pipeline_job_resource_name": self.resource_name,
            "pipeline_root": self.spec.pipeline_root,
        }

    def folder_of(self, task: Task, unique: str) -> str:
        """Returns the folder of a task's outputs, as the service names it."""
        root = self.spec.pipeline_root
        if self.for_kubeflow:
            return f"{root}/{self.spec.name}/{self.id}/{task.id}/{unique}"
        return f"{root}/1/{self.id}/{task.id}_{unique}"

    @property
    def resource_name(self) -> str:
        """By which the service knows the job."""
        return f"projects/1/locations/rehearsal/pipelineJobs/{self.id}"


def job_parameters(spec: Spec) -> dict[str, Any]:
    """Returns the values of a pipeline's parameters: given ones, else defaults.

    Raises:
      UsageError: one has neither, or an unknown one is given.
    """
    given = spec.parameter_values
    if unknown := sorted(set(given) - set(spec.parameters)):
        raise UsageError(
            "the job gives values to parameters that the pipeline does not have",
            where=spec.name,
            expected=", ".join(spec.parameters) or "none",
            actual=", ".join(unknown),
        )
    missing = [
        name
        for name, parameter in spec.parameters.items()
        if name not in given and not parameter.optional
    ]
    if missing:
        raise UsageError(
            "parameters of the pipeline have neither a value nor a default",
            where=spec.name,
            actual=", ".join(missing),
            hint="--parameter NAME=VALUE",
        )
    defaults = {name: item.default for name, item in spec.parameters.items()}
    return {**defaults, **given}


@dataclass(frozen=True)
class Invocation:
    """One task of a job with all that it reads and writes.

    Attributes:
      job: the job.
      task: the task.
      root: the folder that its outputs are made in.
      parameters: its input parameters.
      inputs: its input artifacts.
      outputs: its output artifacts, not made yet.
    """

    job: Job
    task: Task
    root: str
    parameters: Mapping[str, Any]
    inputs: Outputs
    outputs: Outputs

    @classmethod
    def make(
        cls,
        job: Job,
        task: Task,
        upstream: Mapping[str, TaskResult],
        store: MetadataStore,
        unique: str,
    ) -> Invocation:
        """Resolves the inputs of a task, and names its outputs.

        Args:
          job: the job.
          task: the task.
          upstream: the results of the tasks that it reads from.
          store: names the output artifacts.
          unique: tells its folder from those of other executions.
        """
        parameters = {
            name: declared.default
            for name, declared in task.parameter_types.items()
            if declared.default is not None
        }
        for name, value in task.parameters.items():
            parameters[name] = resolve(value, job, upstream)
        root = job.folder_of(task, unique)
        return cls(
            job=job,
            task=task,
            root=root,
            parameters=parameters,
            inputs={
                name: list(upstream[source.task].outputs.get(source.key, ()))
                for name, source in task.artifacts.items()
            },
            outputs={
                name: [
                    StoredArtifact(store.new_name(), kind.title, f"{root}/{name}", {})
                ]
                for name, kind in task.outputs.items()
            },
        )

    @property
    def output_file(self) -> str:
        """Where the executor reports its outputs."""
        return f"{self.root}/executor_output.json"

    def executor_input(self) -> dict[str, Any]:
        """Returns the JSON form of KFP's message ``ExecutorInput``."""
        typed = not self.job.for_kubeflow
        return {
            "inputs": {
                "parameterValues": dict(self.parameters),
                "artifacts": {
                    name: {
                        "artifacts": [
                            item.runtime(
                                self.task.artifact_types[name].schema if typed else None
                            )
                            for item in items
                        ]
                    }
                    for name, items in self.inputs.items()
                },
            },
            "outputs": {
                "artifacts": {
                    name: {
                        "artifacts": [
                            item.runtime(self.task.outputs[name].schema)
                            for item in items
                        ]
                    }
                    for name, items in self.outputs.items()
                },
                "parameters": {
                    name: {"outputFile": f"{self.root}/{name}"}
                    for name in self.task.output_parameters
                },
                "outputFile": self.output_file,
            },
        }

    def command_line(self, command: Command) -> list[str]:
        """Returns a command of the task with its placeholders replaced."""
        given = self.executor_input()
        return [
            substitute(word, given, self.job.variables)
            for word in (*command.command, *command.args)
        ]

    def cache_key(self) -> str:
        """Returns the key under which the service looks for an earlier execution.

        https://cloud.google.com/vertex-ai/docs/pipelines/configure-caching: the inputs,
        the declared outputs, and image, command, arguments and environment.
        """
        container = self.task.executor
        assert isinstance(container, Container)
        parts = {
            "image": container.image,
            "command": [*container.command, *container.args],
            "environment": dict(container.env),
            "parameters": dict(self.parameters),
            "inputs": {
                name: [item.name for item in items]
                for name, items in self.inputs.items()
            },
            "outputs": {name: kind.title for name, kind in self.task.outputs.items()},
        }
        return digest.of_bytes(json.dumps(parts, sort_keys=True).encode())


def resolve(value: Value, job: Job, upstream: Mapping[str, TaskResult]) -> Any:
    """Returns the value of a parameter.

    Raises:
      NodeError: the task that should give it has not.
    """
    match value:
        case Constant(constant):
            if isinstance(constant, str):
                return substitute(constant, {}, job.variables)
            return constant
        case PipelineParameter(name):
            return job.parameters[name]
        case FinalStatus():
            return job.final_status
        case TaskOutput(task, key):
            try:
                return upstream[task].parameters[key]
            except KeyError:
                raise NodeError(f"{task} has no output parameter {key!r}") from None


def substitute(
    text: str,
    executor_input: Mapping[str, Any],
    variables: Mapping[str, Any],
    missing: Callable[[str], str] | None = None,
) -> str:
    """Replaces ``{{$...}}`` in a text.

    Args:
      text: such as ``{{$.inputs.artifacts['model'].uri}}``; ``{{$}}`` is all as JSON.
      executor_input: the task's ``ExecutorInput``.
      variables: placeholders of the job.
      missing: returns what to use where an artifact does not exist; None to raise.

    Raises:
      NodeError: the service has no such placeholder, or nothing to put there.
    """

    def replace(found: re.Match[str]) -> str:
        path = found["path"]
        if not path:
            return json.dumps(executor_input)
        if path[1:] in variables:
            return str(variables[path[1:]])
        try:
            value = _follow(path, executor_input)
        except (KeyError, IndexError, TypeError, ValueError):
            if missing:
                return missing(found[0])
            raise NodeError(f"the placeholder {found[0]} has no value") from None
        return value if isinstance(value, str) else json.dumps(value)

    return _PLACEHOLDER.sub(replace, text)


def _follow(path: str, given: Mapping[str, Any]) -> Any:
    """Returns what a path such as ``.inputs.artifacts['model'].uri`` leads to."""
    steps: list[str] = [found[1] or found[2] for found in _STEP.finditer(path)]
    if _STEP.sub("", path):
        raise ValueError(path)
    if steps[:2] == ["inputs", "parameters"]:
        steps[1] = "parameterValues"
    value: Any = given
    for index, step in enumerate(steps):
        value = value[step]
        if index == 2 and steps[1] == "artifacts":
            # ``.uri`` and ``.metadata`` are those of the one artifact of a key.
            value = value["artifacts"][0]
    return value
