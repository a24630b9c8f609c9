"""The job of ``sluice explain``: cache lookups without running nodes."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfx.components.example_gen.utils import (
    FINGERPRINT_PROPERTY_NAME,
    SPAN_PROPERTY_NAME,
    VERSION_PROPERTY_NAME,
)
from tfx.dsl.compiler import compiler, constants
from tfx.orchestration import metadata
from tfx.orchestration.portable import runtime_parameter_utils

from components.tfrecord_gen.driver import changed_files, digest_reader
from components.tfrecord_gen.exec_properties import SPANS
from components.tfrecord_gen.report import Report
from pipeline.config.serialize import read_stored_config
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.graph.locations import local_locations
from runners.cache import history
from runners.cache.node_cache import NodeCache, WouldRun
from runners.local.explain_failure import explain_failure
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import write_result
from runners.local.node_job import launch, make_cache
from runners.local.prepare_job import connection_of
from sluice.errors import bounded, unknown_node
from sluice.node_kinds import kind_of
from sluice.workspace import Workspace

NAME = "explain"
_DATA_PROPERTIES = (
    FINGERPRINT_PROPERTY_NAME,
    SPANS,
    SPAN_PROPERTY_NAME,
    VERSION_PROPERTY_NAME,
)


def explain(run_dir: str, workspace: str, metadata_copy: str, node_id: str) -> None:
    """Writes whether a node and those upstream of it would run, and why.

    Works on a copy of the metadata, because a cache lookup registers contexts. The last
    outputs of a node that would run stand in for its new ones, so that the nodes after
    it are compared by their own changes.
    """
    place = Path(run_dir)
    try:
        job_environment = JobEnvironment.load(place)
        job_environment.enter()
        config = read_stored_config(place / "config.json")
        places = replace(
            local_locations(config, Workspace(Path(workspace))),
            pipeline_root=str(place / "artifacts"),
            inputs_dir=place / "inputs",
            metadata_db=Path(metadata_copy),
            restores_baseline=False,
        )
        ir = compiler.Compiler().compile(create_pipeline(config, places))
        runtime_parameter_utils.substitute_runtime_parameter(
            ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: place.name}
        )
        answers: dict[str, dict[str, Any]] = {}
        for node in _leading_to(ir, node_id):
            answers[node.node_info.id] = _explain_node(
                ir, node, job_environment, answers
            )
        trained = Workspace(Path(workspace)).checkpoints
        for name, answer in answers.items():
            folder = trained / name / answer.pop("key")
            answer["resumes"] = None
            if answer["would_run"] and folder.is_dir():
                # Imports TensorFlow.
                from pipeline.training.checkpoint import describe_position

                epochs = config.train.epochs
                answer["resumes"] = describe_position(str(folder), epochs)
        write_result(place, NAME, {"nodes": list(answers.values()), "error": None})
    except Exception as error:
        os.write(2, traceback.format_exc().encode())
        failure = explain_failure(NAME, error)
        write_result(place, NAME, {"nodes": [], "error": vars(failure)})


def _leading_to(ir: Any, node_id: str) -> list[Any]:
    """Returns a node and all upstream nodes, in topological order."""
    nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in ir.nodes}
    if node_id not in nodes:
        raise unknown_node(node_id, list(nodes), ir.pipeline_info.id)
    needed, waiting = set(), [node_id]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += nodes[name].upstream_nodes
    return [node for name, node in nodes.items() if name in needed]


def _explain_node(
    ir: Any,
    node: Any,
    job_environment: JobEnvironment,
    answers: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    name, kind = node.node_info.id, kind_of(node.node_info.type.name)
    waits_for = [item for item in node.upstream_nodes if answers[item]["would_run"]]
    with metadata.Metadata(connection_of(ir)) as handle:
        last = history.last_parts(handle.store, ir.pipeline_info.id, name)
    answer: dict[str, Any] = {
        "node": name,
        "would_run": bool(waits_for),
        "because": [],
        "waits_for": waits_for,
        "last_run": last[2] if last else None,
        "key": "none",
    }
    cache = make_cache(ir, name, job_environment, plan=not kind.system, stand_in=True)
    try:
        with suppress(WouldRun):
            launch(ir, name, cache)
    except Exception:
        if not waits_for:
            raise
        # Its input does not exist yet, or any more.
        os.write(2, traceback.format_exc().encode())
        return answer
    answer["key"] = cache.key or answer["key"]
    if kind.system:
        answer["because"] = [] if waits_for else ["it only looks for artifacts"]
    elif cache.reason is not None:
        answer["would_run"] = True
        if last is None:
            answer["because"] = ["it has not finished before"]
        else:
            lines = _changes(ir, last, cache)
            answer["because"] = lines or [cache.reason]
    return answer


def _changes(
    ir: Any, last: tuple[dict[str, Any], Any, str], cache: NodeCache
) -> list[str]:
    """Returns what has changed since an execution, ingested files by name."""
    before, execution, _ = last
    assert cache.facts is not None and cache.parts is not None
    report = None
    if kind_of(cache.facts.kind).ingests:
        with metadata.Metadata(connection_of(ir)) as handle:
            report = _report_of(handle.store, execution.id)
    if report is None:
        return history.changes(before, cache.parts)
    files = changed_files(cache.facts.properties, report, digest_reader())
    fingerprint, fingerprint_now = (
        parts["properties"].get(FINGERPRINT_PROPERTY_NAME)
        for parts in (before, cache.parts)
    )
    if not files and fingerprint != fingerprint_now:
        # Neither is in the report.
        files = ["data: a manifest has changed, or times of files in a bucket"]
    spans, spans_now = _spans(before), _spans(cache.parts)
    lines = [f"spans: {spans} -> {spans_now}"] if spans != spans_now else []
    old, now = (_without_data(parts) for parts in (before, cache.parts))
    return [*lines, *files, *history.changes(old, now)]


def _spans(parts: dict[str, Any]) -> str:
    """Returns the spans in a cache key, such as ``1, 2 version 3``."""
    names = [
        str(span) if version is None else f"{span} version {version}"
        for span, version in parts["properties"].get(SPANS) or ()
    ]
    return ", ".join(bounded(names)) or "none"


def _without_data(parts: dict[str, Any]) -> dict[str, Any]:
    """Returns a cache key without what follows from the chosen spans and files."""
    found = deepcopy(parts)
    made = [item for items in found["outputs"].values() for item in items]
    for properties in (found["properties"], *(item["properties"] for item in made)):
        for name in _DATA_PROPERTIES:
            properties.pop(name, None)
    return found


def _report_of(store: Any, execution_id: int) -> Report | None:
    """Returns the report of an ingestion, None where it is gone."""
    events = store.get_events_by_execution_ids([execution_id])
    made = [
        event.artifact_id
        for event in events
        if event.path.steps and event.path.steps[0].key == "quarantine"
    ]
    try:
        return Report.load(store.get_artifacts_by_id(made)[0].uri)
    except (OSError, ValueError, IndexError):
        return None
