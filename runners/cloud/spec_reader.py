"""Reads a pipeline job into the values of ``runners.cloud.spec``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from runners.cloud.spec import (
    ArtifactType,
    Command,
    Constant,
    Container,
    CustomJob,
    FinalStatus,
    Importer,
    Parameter,
    PipelineParameter,
    Resolver,
    RetryPolicy,
    Spec,
    Task,
    TaskOutput,
    Value,
    invalid_spec,
)
from sluice.errors import ConfigError

_AT_END = "ALL_UPSTREAM_TASKS_COMPLETED"


class SpecReader:
    """Reads one job; errors name the file and the task.

    See ``runners.cloud.spec.read_spec``.
    """

    def __init__(self, job: Mapping[str, Any], where: str) -> None:
        self._job, self._where = job, where
        self._spec = job["pipelineSpec"]
        self._components = self._spec.get("components", {})
        self._executors = self._spec.get("deploymentSpec", {}).get("executors", {})

    def read(self) -> Spec:
        version = str(self._spec.get("schemaVersion", "2.0.0"))
        if not version.startswith("2.1"):
            raise invalid_spec(
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
            tasks=self._in_order(list(self._tasks(root["dag"], given))),
            parameters=parameters,
            parameter_values=runtime.get("parameterValues", {}),
            pipeline_root=runtime.get("gcsOutputDirectory")
            or self._spec.get("defaultPipelineRoot", ""),
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
        if "customJob" in executor:
            return CustomJob()
        if item := executor.get("importer"):
            place = f"{task_id}, artifact URI"
            return Importer(
                # A runtime parameter here is one of the task's own.
                uri=self._value(place, item["artifactUri"], parameters),
                type=_artifact_type(item["typeSchema"]),
                metadata=item.get("metadata", {}),
            )
        if "resolver" in executor:
            queries = executor["resolver"].get("outputArtifactQueries", {})
            return Resolver({key: query["filter"] for key, query in queries.items()})
        raise self._error(task_id, f"executor {label!r}: {', '.join(executor)}")

    def _in_order(self, tasks: list[Task]) -> tuple[Task, ...]:
        by_id = {task.id: task for task in tasks}
        if len(by_id) < len(tasks):
            raise invalid_spec("two tasks have the same name", self._where, "")
        for task in tasks:
            for upstream in task.upstream:
                if upstream not in by_id:
                    raise self._error(task.id, f"task {upstream!r}, which is missing")
        sorter = TopologicalSorter({task.id: task.upstream for task in tasks})
        try:
            order = [by_id[task_id] for task_id in sorter.static_order()]
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise invalid_spec(
                "tasks wait for each other", self._where, cycle
            ) from None
        return tuple(sorted(order, key=lambda task: task.is_exit_handler))

    def _error(self, place: str, found: str) -> ConfigError:
        return invalid_spec(f"{place} cannot be run", self._where, found)


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
