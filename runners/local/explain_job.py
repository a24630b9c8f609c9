"""The job behind ``sluice explain``: asks the cache about nodes, and runs none."""

from __future__ import annotations

import os
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler, constants
from tfx.orchestration import metadata
from tfx.orchestration.portable import runtime_parameter_utils

from pipeline.create_pipeline import create_pipeline
from pipeline.places import local_places
from pipeline.stored_config import read_stored_config
from runners.local.cache import cache_history
from runners.local.cache.node_cache import WouldRun
from runners.local.explain_failure import explain_failure
from runners.local.job_result import write_result
from runners.local.node_job import launch, make_cache
from runners.local.prepare_job import connection_of
from runners.local.surroundings import Surroundings
from sluice.did_you_mean import unknown_node
from sluice.workspace import Workspace

NAME = "explain"
_SYSTEM = "tfx.dsl.components.common."


def explain(run_dir: str, workspace: str, metadata_copy: str, node_id: str) -> None:
    """Writes whether a node would run and why, with the nodes that it waits for.

    Works on a copy of the metadata: asking registers what a run would register.

    Args:
      run_dir: a temporary folder with ``config.json`` and the surroundings.
      workspace: of the pipeline.
      metadata_copy: path of the copy.
      node_id: which node.
    """
    place = Path(run_dir)
    try:
        surroundings = Surroundings.load(place)
        surroundings.enter()
        config = read_stored_config(place / "config.json")
        places = replace(
            local_places(config, Workspace(Path(workspace))),
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
            answers[node.node_info.id] = _ask(ir, node, surroundings, answers)
        write_result(place, NAME, {"nodes": list(answers.values()), "error": None})
    except Exception as error:
        os.write(2, traceback.format_exc().encode())
        failure = explain_failure(NAME, "", error)
        write_result(place, NAME, {"nodes": [], "error": vars(failure)})


def _leading_to(ir: Any, node_id: str) -> list[Any]:
    """Returns a node and all that it waits for, in topological order."""
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


def _ask(
    ir: Any,
    node: Any,
    surroundings: Surroundings,
    answers: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    name, kind = node.node_info.id, node.node_info.type.name
    answer: dict[str, Any] = {
        "node": name,
        "would_run": False,
        "because": [],
        "waits_for": [],
        "last_run": None,
    }
    # What a resolver would find depends on what the nodes before it would make.
    unsettled = [item for item in node.upstream_nodes if answers[item]["would_run"]]
    with metadata.Metadata(connection_of(ir)) as handle:
        last = cache_history.last_parts(handle.store, ir.pipeline_info.id, name)
    answer["last_run"] = last[2] if last else None
    if unsettled:
        answer["would_run"] = True
        answer["waits_for"] = unsettled
        return answer
    if kind.startswith(_SYSTEM):
        launch(ir, name, make_cache(ir, name, surroundings))
        answer["because"] = ["it only looks for artifacts"]
        return answer
    try:
        launch(ir, name, make_cache(ir, name, surroundings, plan=True))
    except WouldRun as miss:
        answer["would_run"] = True
        if last is None:
            answer["because"] = ["it has not finished before"]
        else:
            lines = cache_history.changes(last[0], miss.parts)
            answer["because"] = lines or [miss.reason]
    return answer
