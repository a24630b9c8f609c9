"""Typed reading of a compiled pipeline: KFP's pipeline spec 2.1, as Vertex runs it.

A spec spreads each task over four places (the task, its component, its executor, the
pipeline's inputs) and may wrap all but the exit handler in a nested graph. Here a task
is one value, with its inputs resolved to constants, pipeline parameters and outputs of
tasks. What is read is what the service would run: nothing is filled in or repaired, and
what cannot be understood is an error, not ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

from sluice.errors import ConfigError, UsageError
from sluice.storage import digest

TaskKind = Literal["container", "custom_job", "importer", "resolver"]

_AT_END = "ALL_UPSTREAM_TASKS_COMPLETED"


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
    """What a custom job runs: worker pools and all else, as the service takes it."""

    job_spec: Mapping[str, Any]


@dataclass(frozen=True)
class Importer:
    """Registers an artifact that exists.

    Attributes:
      uri: where it is.
      type: its type.
      metadata: its properties.
      reimport: whether to register it again where it is known.
    """

    uri: Value
    type: ArtifactType
    metadata: Mapping[str, Any]
    reimport: bool


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
    def kind(self) -> TaskKind:
        """What the executor is."""
        kinds: dict[type, TaskKind] = {
            Container: "container",
            CustomJob: "custom_job",
            Importer: "importer",
            Resolver: "resolver",
        }
        return kinds[type(self.executor)]


@dataclass(frozen=True)
class Spec:
    """A compiled pipeline.

    Attributes:
      name: of the pipeline.
      schema_version: of the spec, such as ``2.1.0``.
      sdk_version: of the compiler, such as ``tfx-1.16.0``.
      tasks: in topological order, the exit handler last.
      parameters: the pipeline's runtime parameters.
      parameter_values: the values that the job gives to them.
      pipeline_root: the job's ``gcsOutputDirectory``, else the spec's default; "" for
        none.
      labels: of the job.
      job: the job as a dict, as it would be submitted.
    """

    name: str
    schema_version: str
    sdk_version: str
    tasks: tuple[Task, ...]
    parameters: Mapping[str, Parameter]
    parameter_values: Mapping[str, Any]
    pipeline_root: str
    labels: Mapping[str, str]
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
        raise _invalid("the file is not valid JSON or YAML", path, str(error)) from None
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
        raise _invalid("this is not a compiled pipeline", where, type(job).__name__)
    if "pipelineSpec" not in job:
        job = {"pipelineSpec": job}
    try:
        return _Reader(job, where).read()
    except (KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise _invalid("the compiled pipeline is malformed", where, found) from error


class _Reader:
    """Reads one job; errors name the file and the task."""

    def __init__(self, job: Mapping[str, Any], where: str) -> None:
        self._job, self._where = job, where
        self._spec = job["pipelineSpec"]
        self._components = self._spec.get("components", {})
        self._executors = self._spec.get("deploymentSpec", {}).get("executors", {})

    def read(self) -> Spec:
        version = str(self._spec.get("schemaVersion", "2.0.0"))
        if not version.startswith("2.1"):
            raise _invalid(
                "pipelines are read in spec 2.1 only: in 2.0 TFX's driver cannot pass "
                "the span that it resolved to the executor",
                self._where,
                f"schemaVersion {version}",
            )
        root, runtime = self._spec["root"], self._job.get("runtimeConfig", {})
        inputs = root.get("inputDefinitions", {})
        if inputs.get("artifacts"):
            raise self._error("the pipeline", "an input artifact of the pipeline")
        parameters = _parameters(inputs)
        given: dict[str, Value] = {name: PipelineParameter(name) for name in parameters}
        return Spec(
            name=self._spec["pipelineInfo"]["name"],
            schema_version=version,
            sdk_version=self._spec.get("sdkVersion", ""),
            tasks=self._in_order(list(self._tasks(root["dag"], given))),
            parameters=parameters,
            parameter_values=runtime.get("parameterValues", {}),
            pipeline_root=runtime.get("gcsOutputDirectory")
            or self._spec.get("defaultPipelineRoot", ""),
            labels=self._job.get("labels", {}),
            job=self._job,
        )

    def _tasks(
        self, dag: Mapping[str, Any], given: Mapping[str, Value]
    ) -> Iterator[Task]:
        """Yields the tasks of a graph whose inputs are ``given``, and of its graphs."""
        for task_id, task in dag["tasks"].items():
            component = self._component(task_id, task)
            if "dag" not in component:
                yield self._task(task_id, task, component, given)
                continue
            is_plain = not (task.get("dependentTasks") or task.get("triggerPolicy"))
            if not is_plain or task.get("inputs", {}).get("artifacts"):
                raise self._error(task_id, "a nested graph that waits for something")
            passed = self._parameters(task_id, task, given)
            yield from self._tasks(component["dag"], passed)

    def _component(self, task_id: str, task: Mapping[str, Any]) -> Mapping[str, Any]:
        for key in ("artifactIterator", "parameterIterator"):
            if key in task:
                raise self._error(task_id, f"a loop ({key})")
        name = task["componentRef"]["name"]
        if name not in self._components:
            raise self._error(task_id, f"component {name!r}, which is not declared")
        return self._components[name]

    def _task(
        self,
        task_id: str,
        task: Mapping[str, Any],
        component: Mapping[str, Any],
        given: Mapping[str, Value],
    ) -> Task:
        declared = component.get("inputDefinitions", {})
        outputs = component.get("outputDefinitions", {})
        policy = task.get("triggerPolicy", {})
        at_end = policy.get("strategy") == _AT_END
        artifacts = self._artifacts(task_id, task)
        parameters = self._parameters(task_id, task, given)
        produced = [
            value.task
            for value in (*artifacts.values(), *parameters.values())
            if isinstance(value, TaskOutput)
        ]
        # An exit handler waits for the graph that holds all others.
        upstream = produced + ([] if at_end else task.get("dependentTasks", []))
        return Task(
            id=task_id,
            executor=self._executor(task_id, component["executorLabel"], parameters),
            artifacts=artifacts,
            parameters=parameters,
            artifact_types=_artifact_types(declared),
            parameter_types=_parameters(declared),
            outputs=_artifact_types(outputs),
            output_parameters={
                key: item["parameterType"]
                for key, item in outputs.get("parameters", {}).items()
            },
            upstream=tuple(sorted(set(upstream))),
            condition=policy.get("condition") or None,
            cached=bool(task.get("cachingOptions", {}).get("enableCache")),
            retry=_retry(task.get("retryPolicy")),
            is_exit_handler=at_end,
        )

    def _artifacts(
        self, task_id: str, task: Mapping[str, Any]
    ) -> dict[str, TaskOutput]:
        found = {}
        for key, item in task.get("inputs", {}).get("artifacts", {}).items():
            made_by = item.get("taskOutputArtifact")
            if made_by is None:
                raise self._error(task_id, f"input {key!r}: {', '.join(item)}")
            found[key] = TaskOutput(
                made_by["producerTask"], made_by["outputArtifactKey"]
            )
        return found

    def _parameters(
        self, task_id: str, task: Mapping[str, Any], given: Mapping[str, Value]
    ) -> dict[str, Value]:
        return {
            key: self._value(f"{task_id}, parameter {key!r}", item, given)
            for key, item in task.get("inputs", {}).get("parameters", {}).items()
        }

    def _value(
        self, place: str, item: Mapping[str, Any], given: Mapping[str, Value]
    ) -> Value:
        if item.get("parameterExpressionSelector"):
            raise self._error(place, "an expression on a parameter")
        name = item.get("componentInputParameter") or item.get("runtimeParameter")
        if name is not None:
            if name not in given:
                raise self._error(place, f"{name!r}, which is no input of its graph")
            return given[name]
        if made_by := item.get("taskOutputParameter"):
            return TaskOutput(made_by["producerTask"], made_by["outputParameterKey"])
        if "taskFinalStatus" in item:
            return FinalStatus()
        if "runtimeValue" in item:
            return self._value(place, item["runtimeValue"], given)
        if "constant" in item:
            return Constant(item["constant"])
        raise self._error(place, ", ".join(item) or "nothing")

    def _executor(
        self, task_id: str, label: str, parameters: Mapping[str, Value]
    ) -> Container | CustomJob | Importer | Resolver:
        executor = self._executors.get(label, {})
        if item := executor.get("container"):
            hook = item.get("lifecycle", {}).get("preCacheCheck")
            return Container(
                command=tuple(item.get("command", ())),
                args=tuple(item.get("args", ())),
                image=item["image"],
                env={one["name"]: one.get("value", "") for one in item.get("env", ())},
                resources=item.get("resources", {}),
                driver=Command(
                    tuple(hook.get("command", ())), tuple(hook.get("args", ()))
                )
                if hook
                else None,
            )
        if item := executor.get("customJob"):
            return CustomJob(item["customJob"])
        if item := executor.get("importer"):
            place = f"{task_id}, artifact URI"
            return Importer(
                # A runtime parameter here is one of the task's own.
                uri=self._value(place, item["artifactUri"], parameters),
                type=_artifact_type(item["typeSchema"]),
                metadata=item.get("metadata", {}),
                reimport=bool(item.get("reimport")),
            )
        if "resolver" in executor:
            queries = executor["resolver"].get("outputArtifactQueries", {})
            return Resolver({key: query["filter"] for key, query in queries.items()})
        raise self._error(task_id, f"executor {label!r}: {', '.join(executor)}")

    def _in_order(self, tasks: list[Task]) -> tuple[Task, ...]:
        by_id = {task.id: task for task in tasks}
        if len(by_id) < len(tasks):
            raise _invalid("two tasks have the same name", self._where, "")
        for task in tasks:
            for upstream in task.upstream:
                if upstream not in by_id:
                    raise self._error(task.id, f"task {upstream!r}, which is missing")
        sorter = TopologicalSorter({task.id: task.upstream for task in tasks})
        try:
            order = [by_id[task_id] for task_id in sorter.static_order()]
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise _invalid("tasks wait for each other", self._where, cycle) from None
        return tuple(sorted(order, key=lambda task: task.is_exit_handler))

    def _error(self, place: str, found: str) -> ConfigError:
        return _invalid(f"{place} cannot be run", self._where, found)


def _parameters(definitions: Mapping[str, Any]) -> dict[str, Parameter]:
    return {
        key: Parameter(
            item.get("parameterType", ""),
            item.get("defaultValue"),
            bool(item.get("isOptional")) or "defaultValue" in item,
        )
        for key, item in definitions.get("parameters", {}).items()
    }


def _artifact_types(definitions: Mapping[str, Any]) -> dict[str, ArtifactType]:
    return {
        key: _artifact_type(item["artifactType"], bool(item.get("isOptional")))
        for key, item in definitions.get("artifacts", {}).items()
    }


def _artifact_type(schema: Mapping[str, str], optional: bool = False) -> ArtifactType:
    title = schema.get("schemaTitle")
    if title is None:
        # TFX writes a YAML document; its first line is the title.
        lines = schema.get("instanceSchema", "").splitlines()
        titles = [line[6:].strip() for line in lines if line.startswith("title:")]
        title = titles[0] if titles else "tfx.Artifact"
    return ArtifactType(title, schema, optional)


def _retry(policy: Mapping[str, Any] | None) -> RetryPolicy | None:
    if not policy or not policy.get("maxRetryCount"):
        return None
    return RetryPolicy(
        int(policy["maxRetryCount"]),
        _seconds(policy.get("backoffDuration", "0s")),
        float(policy.get("backoffFactor") or 2.0),
        min(_seconds(policy.get("backoffMaxDuration", "3600s")), 3600.0),
    )


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


def _invalid(what: str, where: object, actual: str) -> ConfigError:
    return ConfigError(
        what,
        where=where,
        actual=actual or None,
        hint="compile it again: `sluice compile NAME --engine vertex -o FILE`",
    )
