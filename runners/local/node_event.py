"""Builds the ``node_finished`` event of a node, with data read from disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runners.local.graph_file import PlannedNode
from runners.local.run_result import NodeResult
from sluice.node_kinds import JUDGEMENTS, VERDICTS
from sluice.record.events import Artifact, NodeFinished, Push
from sluice.record.run_record import DocumentRecord
from sluice.record.verdict import Verdict

_SERVED = ("pushed", "already_served")


def node_finished(
    run_dir: Path,
    node: PlannedNode,
    result: NodeResult,
    facts: Mapping[str, Any] | None = None,
) -> NodeFinished:
    """Returns the event of a node that has ended.

    ``facts`` is the report of its process, with cache key, documents and notes; None
    if it wrote none.
    """
    facts = facts or {}
    log = run_dir / "logs" / f"{node.id}.log"
    gates, unread = _verdicts(result)
    push = _push(node, result)
    if push and push.state == "blocked" and result.state != "blocked":
        names = " and ".join(_refused_by(node, result)) or "a missing blessing"
        result = replace(result, state="blocked", reason=f"stopped by {names}")
    return NodeFinished(
        node=result.node,
        state=result.state,
        duration_s=result.duration_s,
        reason=result.reason,
        error=result.error,
        log=str(log) if result.error and log.exists() else None,
        outputs=_artifacts(result.outputs),
        inputs=_artifacts(result.inputs),
        peak_memory_bytes=result.peak_memory_bytes,
        execution_id=result.execution_id,
        cache=facts.get("cache"),
        documents=tuple(DocumentRecord(**item) for item in facts.get("documents", ())),
        notes=(*facts.get("notes", ()), *unread),
        gates=tuple(gates),
        push=push,
    )


def _verdicts(result: NodeResult) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the verdicts among the outputs, and notes on those that are damaged."""
    verdicts, notes = [], []
    for artifact in _outputs(result):
        if artifact["type"] not in VERDICTS:
            continue
        try:
            verdicts.append(Verdict.load(artifact["uri"]).to_dict())
        except (OSError, ValueError, KeyError, TypeError) as error:
            notes.append(f"the verdict in {artifact['uri']} cannot be read: {error}")
    return verdicts, notes


def _push(node: PlannedNode, result: NodeResult) -> Push | None:
    if not node.pushes:
        return None
    if result.error:
        return Push("failed")
    for artifact in _outputs(result):
        properties = artifact["properties"]
        state = properties.get("state")
        if state in _SERVED:
            return Push(
                "already_served" if result.state == "cached" else state,
                int(properties["pushed_version"]),
                properties["pushed_destination"],
            )
        if state is not None:
            return Push(state)
    return Push("blocked") if result.state == "blocked" else None


def _refused_by(node: PlannedNode, result: NodeResult) -> Iterator[str]:
    """Yields the nodes that have not blessed the model.

    TFX's URIs end in NODE/OUTPUT/EXECUTION, those of a service do not.
    """
    for key, artifacts in result.inputs.items():
        for artifact in artifacts:
            is_blessing = artifact["type"] in JUDGEMENTS - VERDICTS
            if is_blessing and not artifact["properties"].get("blessed"):
                makers = node.needs.get(key, ())
                by_uri = artifact["uri"].split("/")[-3]
                yield makers[0] if len(makers) == 1 else by_uri


def _outputs(result: NodeResult) -> Iterator[dict[str, Any]]:
    for artifacts in result.outputs.values():
        yield from artifacts


def _artifacts(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[Artifact]]:
    return {key: [Artifact(**item) for item in items] for key, items in found.items()}
