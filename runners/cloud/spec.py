"""Typed reading of a compiled pipeline: KFP's pipeline spec 2.1, as Vertex runs it.

A spec spreads each task over four places (the task, its component, its executor, the
pipeline's inputs) and may wrap all but the exit handler in a nested graph. Here a task
is one value, with its inputs resolved to constants, pipeline parameters and outputs of
tasks. What is read is what the service would run: nothing is filled in or repaired, and
what cannot be understood is an error, not ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice.errors import ConfigError, UsageError
from sluice.storage import digest


@dataclass(frozen=True)
class Constant:
    """A value that the compiler has written into the spec."""

    value: Any


@dataclass(frozen=True)
class PipelineParameter:
    """A runtime parameter of the pipeline, see ``Spec.parameters``."""

    name: str


@dataclass(frozen=True)
class TaskOutput:
    """An output of another task."""

    task: str
    key: str


@dataclass(frozen=True)
class FinalStatus:
    """How the rest of the pipeline ended; an input of an exit handler."""


Value = Constant | PipelineParameter | TaskOutput | FinalStatus


@dataclass(frozen=True)
class Parameter:
    """Declaration of a parameter.

    Attributes:
      type: such as ``STRING`` or ``NUMBER_INTEGER``.
      default: None if it has none.
      optional: whether a task may leave it out.
    """

    type: str
    default: Any = None
    optional: bool = False


@dataclass(frozen=True)
class ArtifactType:
    """Declaration of an artifact.

    Attributes:
      title: the schema's, such as ``tfx.Model``.
      schema: as the spec has it, with ``instanceSchema`` or ``schemaTitle``.
      optional: whether the input may be missing.
    """

    title: str
    schema: Mapping[str, str]
    optional: bool = False


@dataclass(frozen=True)
class Command:
    """A command line in the image, with ``{{$...}}`` placeholders."""

    command: tuple[str, ...]
    args: tuple[str, ...]


@dataclass(frozen=True)
class Container(Command):
    """What a container task runs.

    Attributes:
      image: the image.
      env: environment variables.
      resources: as the spec has them, such as ``cpuLimit`` and ``accelerator``.
      driver: runs before the cache lookup (``lifecycle.preCacheCheck``).
    """

    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    driver: Command | None = None


@dataclass(frozen=True)
class CustomJob:
    """A custom job, of worker pools; only the service runs it."""


@dataclass(frozen=True)
class Importer:
    """Registers an artifact that exists.

    Attributes:
      uri: where it is.
      type: its type.
      metadata: its properties.
    """

    uri: Value
    type: ArtifactType
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Resolver:
    """Looks up artifacts of earlier runs: a filter of artifacts by output key."""

    queries: Mapping[str, str]


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after which waits a failed task is started again."""

    max_retries: int
    backoff_s: float = 0.0
    factor: float = 2.0
    max_backoff_s: float = 3600.0


@dataclass(frozen=True)
class Task:
    """A task of the pipeline.

    Attributes:
      id: its name.
      executor: what it runs.
      artifacts: its input artifacts by key.
      parameters: its input parameters by key; those with a default may be missing.
      artifact_types: declarations of the input artifacts.
      parameter_types: declarations of the input parameters.
      outputs: declarations of the output artifacts.
      output_parameters: types of the output parameters.
      upstream: the tasks that it waits for, sorted.
      condition: a CEL expression; None to run whenever upstream has succeeded.
      cached: whether the service may take its outputs from an earlier run.
      retry: None for no retries.
      is_exit_handler: whether it runs at the end, however the others have ended.
    """

    id: str
    executor: Container | CustomJob | Importer | Resolver
    artifacts: Mapping[str, TaskOutput]
    parameters: Mapping[str, Value]
    artifact_types: Mapping[str, ArtifactType]
    parameter_types: Mapping[str, Parameter]
    outputs: Mapping[str, ArtifactType]
    output_parameters: Mapping[str, str]
    upstream: tuple[str, ...]
    condition: str | None
    cached: bool
    retry: RetryPolicy | None
    is_exit_handler: bool

    @property
    def constants(self) -> dict[str, Any]:
        """Its parameters that are the same in every run."""
        given = self.parameters.items()
        return {key: value.value for key, value in given if isinstance(value, Constant)}


@dataclass(frozen=True)
class Spec:
    """A compiled pipeline.

    Attributes:
      name: of the pipeline.
      tasks: in topological order, the exit handler last.
      parameters: the pipeline's runtime parameters.
      parameter_values: the values that the job gives to them.
      pipeline_root: the job's ``gcsOutputDirectory``, else the spec's default; "" for
        none.
      job: the job as a dict, as it would be submitted.
    """

    name: str
    tasks: tuple[Task, ...]
    parameters: Mapping[str, Parameter]
    parameter_values: Mapping[str, Any]
    pipeline_root: str
    job: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the job, whatever the order of its keys."""
        return digest.of_bytes(json.dumps(self.job, sort_keys=True).encode())

    @property
    def exit_handler(self) -> Task | None:
        """The task that runs at the end, if there is one."""
        return next((task for task in self.tasks if task.is_exit_handler), None)

    def task(self, task_id: str) -> Task:
        """Returns a task by its id.

        Raises:
          KeyError: there is none.
        """
        return {task.id: task for task in self.tasks}[task_id]


def load_spec(path: Path) -> Spec:
    """Reads a compiled pipeline from a JSON or YAML file.

    Raises:
      UsageError: the file cannot be read.
      ConfigError: it holds no pipeline spec 2.1.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the compiled pipeline cannot be read",
            where=path,
            actual=str(error),
            hint="compile it: `sluice compile NAME --engine vertex -o FILE`",
        ) from error
    try:
        if path.suffix in (".yaml", ".yml"):
            from ruamel.yaml import YAML
            from ruamel.yaml.error import YAMLError

            try:
                # A second document, if there is one, is for one platform only.
                job = next(iter(YAML(typ="safe", pure=True).load_all(text)), None)
            except YAMLError as error:
                raise ValueError(str(error)) from error
        else:
            job = json.loads(text)
    except ValueError as error:
        raise invalid_spec(
            "the file is not valid JSON or YAML", path, str(error)
        ) from None
    return read_spec(job, where=str(path))


def read_spec(job: Any, where: str = "the compiled pipeline") -> Spec:
    """Returns a compiled pipeline.

    Args:
      job: a pipeline job, or a bare pipeline spec.
      where: for errors.

    Raises:
      ConfigError: it is no pipeline spec 2.1, or its parts do not fit together.
    """
    if not isinstance(job, Mapping):
        raise invalid_spec("this is not a compiled pipeline", where, type(job).__name__)
    if "pipelineSpec" not in job:
        job = {"pipelineSpec": job}
    # It imports the values above.
    from runners.cloud.spec_reader import SpecReader

    try:
        return SpecReader(job, where).read()
    except (KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise invalid_spec(
            "the compiled pipeline is malformed", where, found
        ) from error


def invalid_spec(what: str, where: object, actual: str) -> ConfigError:
    """Returns the error for a job that cannot be read."""
    return ConfigError(
        what,
        where=where,
        actual=actual or None,
        hint="compile it again: `sluice compile NAME --engine vertex -o FILE`",
    )
