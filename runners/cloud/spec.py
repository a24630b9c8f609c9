"""A compiled pipeline, read through KFP's own protos: tasks with resolved inputs.

A spec spreads each task over four places (the task, its component, its executor, the
pipeline's parameters) and may wrap all but the exit handler in a nested graph. Here a
task is one value. What TFX's compiler does not write, such as loops, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2 as kfp

from sluice.node_kinds import NodeKind, find_kind
from sluice.record.parts import NodeRecord


class TaskOutput(NamedTuple):
    """An output of another task."""

    task: str
    key: str


@dataclass(frozen=True)
class Task:
    """A task of the pipeline.

    Attributes:
      id: its name.
      task: KFP's ``PipelineTaskSpec``.
      component: KFP's ``ComponentSpec``, which declares its inputs and outputs.
      executor: KFP's ``ExecutorSpec``: a container, an importer, a resolver or a custom
        job.
      artifacts: its input artifacts by key.
      parameters: the values of its input parameters by key; None of a runtime parameter
        that has no value. Without the final status, which only the service knows.
      upstream: the tasks that it waits for, sorted.
    """

    id: str
    task: Any
    component: Any
    executor: Any
    artifacts: Mapping[str, TaskOutput]
    parameters: Mapping[str, Any]
    upstream: tuple[str, ...]

    @property
    def condition(self) -> str:
        """A CEL expression; "" to run whenever upstream has succeeded."""
        return self.task.trigger_policy.condition

    @property
    def is_exit_handler(self) -> bool:
        """Whether it runs at the end, however the others have ended."""
        policy = self.task.trigger_policy
        return policy.strategy == policy.ALL_UPSTREAM_TASKS_COMPLETED

    @property
    def kind(self) -> NodeKind:
        """The kind of its node, by its executor's class; by its id where unknown."""
        name = "tfx.dsl.components.common.resolver"
        if self.executor.WhichOneof("spec") != "resolver":
            flags = dict(pairwise(self.executor.container.args))
            module = flags.get("--executor_class_path", "").rpartition(".")[0]
            name = re.sub(r"\.executor$", ".component", module)
        return find_kind(name) or NodeKind(self.id)

    @property
    def imported_uri(self) -> Any:
        """Where the artifact of an importer is."""
        return _value(self.executor.importer.artifact_uri, self.parameters)


@dataclass(frozen=True)
class Spec:
    """A compiled pipeline.

    Attributes:
      tasks: in topological order, the exit handler last.
      root: folder of its artifacts.
    """

    tasks: tuple[Task, ...]
    root: str

    @property
    def nodes(self) -> tuple[Task, ...]:
        """The tasks without the exit handler."""
        return tuple(task for task in self.tasks if not task.is_exit_handler)

    def graph(self) -> list[NodeRecord]:
        """Returns the nodes for a record, none of which has run."""
        return [
            NodeRecord(task.id, task.kind.name, upstream=list(task.upstream))
            for task in self.nodes
        ]


def read_spec(job: Mapping[str, Any]) -> Spec:
    """Returns a compiled pipeline.

    Args:
      job: as the service takes it, with ``pipelineSpec`` and ``runtimeConfig``.
    """
    spec = json_format.ParseDict(job["pipelineSpec"], kfp.PipelineSpec())
    deployment = json_format.ParseDict(
        json_format.MessageToDict(spec.deployment_spec),
        kfp.PipelineDeploymentConfig(),
    )
    runtime = job.get("runtimeConfig", {})
    parameters = {
        name: json_format.MessageToDict(item.default_value)
        for name, item in spec.root.input_definitions.parameters.items()
        if item.HasField("default_value")
    } | runtime.get("parameterValues", {})
    tasks = {
        task.id: task
        for task in _tasks(spec, deployment.executors, spec.root.dag, parameters)
    }
    order = TopologicalSorter({x.id: x.upstream for x in tasks.values()})
    return Spec(
        tasks=tuple(
            sorted(
                (tasks[task_id] for task_id in order.static_order()),
                key=lambda task: task.is_exit_handler,
            )
        ),
        root=runtime.get("gcsOutputDirectory") or spec.default_pipeline_root,
    )


def type_title(schema: Mapping[str, str]) -> str:
    """Returns the title of an ``ArtifactTypeSchema`` in JSON, such as ``tfx.Model``."""
    # TFX writes a YAML document; its first line is the title.
    text = schema.get("instanceSchema", "")
    found = re.search(r"^title:\s*(\S+)", text, re.MULTILINE)
    return schema.get("schemaTitle") or (found[1] if found else "tfx.Artifact")


def _tasks(
    spec: Any, executors: Any, dag: Any, values: Mapping[str, Any]
) -> Iterator[Task]:
    """Yields the tasks of a graph whose inputs are ``values``, and of its graphs."""
    # A proto's map has no order.
    for task_id, task in sorted(dag.tasks.items()):
        component = spec.components[task.component_ref.name]
        parameters = {
            key: values.get(item.component_input_parameter)
            if item.component_input_parameter
            else _value(item.runtime_value, values)
            for key, item in task.inputs.parameters.items()
            if not item.HasField("task_final_status")
        }
        if component.HasField("dag"):
            yield from _tasks(spec, executors, component.dag, parameters)
            continue
        artifacts = {
            key: TaskOutput(
                item.task_output_artifact.producer_task,
                item.task_output_artifact.output_artifact_key,
            )
            for key, item in task.inputs.artifacts.items()
        }
        upstream = {source.task for source in artifacts.values()}
        flat = Task(
            id=task_id,
            task=task,
            component=component,
            executor=executors[component.executor_label],
            artifacts=artifacts,
            parameters=parameters,
            # An exit handler waits for the graph that holds all others.
            upstream=tuple(sorted(upstream | {*task.dependent_tasks})),
        )
        yield replace(flat, upstream=()) if flat.is_exit_handler else flat


def _value(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Returns the value of a ``ValueOrRuntimeParameter``."""
    if value.runtime_parameter:
        return parameters.get(value.runtime_parameter)
    return json_format.MessageToDict(value.constant)
