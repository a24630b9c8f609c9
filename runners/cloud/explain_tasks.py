"""Explains which tasks a service would run, by what changed since their last end.

The service computes its cache keys itself; they depend on the task's container, its
constant and pipeline parameters and its input artifacts, which are compared here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runners.cloud.spec import (
    Command,
    Constant,
    PipelineParameter,
    Resolver,
    Spec,
    Task,
)
from sluice.errors import unknown_node
from sluice.record.run_record import RunRecord

_FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class SubmittedRun:
    """A run in the service: what was submitted, and what became of it."""

    spec: Spec
    record: RunRecord


def explain_tasks(
    now: Spec, runs: Sequence[SubmittedRun], node: str
) -> list[dict[str, Any]]:
    """Returns whether a task and those upstream of it would run, and why.

    Args:
      now: the pipeline as it would be submitted, with its parameters.
      runs: earlier ones, newest first.
      node: the task.

    Raises:
      UsageError: there is no such task.
    """
    tasks = {task.id: task for task in now.tasks if not task.is_exit_handler}
    if node not in tasks:
        raise unknown_node(node, list(tasks), now.name)
    needed, waiting = set(), [node]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += tasks[name].upstream
    answers: dict[str, dict[str, Any]] = {}
    for name, task in tasks.items():
        if name in needed:
            before = [up for up in task.upstream if answers[up]["would_run"]]
            answers[name] = _explain(now, task, before, runs)
    return list(answers.values())


def _explain(
    now: Spec, task: Task, waits_for: list[str], runs: Sequence[SubmittedRun]
) -> dict[str, Any]:
    last = next((run for run in runs if _has_finished(run, task.id)), None)
    if last is None:
        because = ["it has not finished before"]
    else:
        because = list(_changes(now, task, last.spec))
    if isinstance(task.executor, Resolver):
        because = because if waits_for else ["it only looks for artifacts"]
    elif not task.cached:
        because.append("the service does not cache it")
    return {
        "node": task.id,
        "would_run": bool(waits_for or because),
        "because": because,
        "waits_for": waits_for,
        "last_run": last.record.run_id if last else None,
        "resumes": None,
    }


def _has_finished(run: SubmittedRun, task: str) -> bool:
    return any(
        node.id == task and node.state in ("ran", "cached") for node in run.record.nodes
    )


def _changes(now: Spec, task: Task, before: Spec) -> Iterator[str]:
    old = before.task(task.id)
    if isinstance(task.executor, Command) and isinstance(old.executor, Command):
        image = getattr(task.executor, "image", None)
        old_image = getattr(old.executor, "image", None)
        if image != old_image:
            yield f"image: {old_image} -> {image}"
        if (task.executor.command, task.executor.args) != (
            old.executor.command,
            old.executor.args,
        ):
            yield "its command line changed"
    values, earlier = _values(now, task), _values(before, old)
    for key in sorted({*values, *earlier}):
        if values.get(key) == earlier.get(key):
            continue
        if key == _FINGERPRINT:
            yield from _code_changes(earlier.get(key), values.get(key))
        else:
            yield f"property {key} changed"


def _values(spec: Spec, task: Task) -> dict[str, Any]:
    """Returns the parameters of a task that are known before it runs."""
    found = {}
    for key, value in task.parameters.items():
        if isinstance(value, Constant):
            found[key] = value.value
        elif isinstance(value, PipelineParameter):
            default = spec.parameters[value.name].default
            found[key] = spec.parameter_values.get(value.name, default)
    return found


def _code_changes(before: Any, now: Any) -> Iterator[str]:
    try:
        old, new = json.loads(before)["code"], json.loads(now)["code"]
    except (ValueError, KeyError, TypeError):
        yield "its code changed"
        return
    for module in sorted({*old, *new}):
        if module not in new:
            yield f"code: {module} is gone"
        elif module not in old:
            yield f"code: {module} is new"
        elif old[module] != new[module]:
            yield f"code: {module} changed"
