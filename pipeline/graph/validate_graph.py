"""Validates the graph of a config before TFX is imported: its nodes and their order.

Components and their arguments are checked by making them, in ``create_pipeline``.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from pipeline.config.config import Config
from pipeline.config.custom_node import CustomNode
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.validate import ValidConfig, validate_config
from pipeline.graph.custom_nodes import list_nodes, node_ids
from pipeline.graph.node_registry import NODES
from sluice.errors import unknown_node


def validate_pipeline(config: Config) -> ValidConfig:
    """Returns the config completed from its schema, its graph checked as well.

    Raises:
      ConfigError: something does not fit; names file, line and key path of each.
    """
    valid = validate_config(config)
    problems = Problems(config.origin)
    for name, own in config.nodes.items():
        if name in (node.id for node in NODES):
            problems.add(("nodes", name), "the pipeline has such a node already")
        _check_node(config, name, own, problems)
    problems.raise_if_any()
    try:
        TopologicalSorter({n.id: n.upstream for n in list_nodes(config)}).prepare()
    except CycleError as error:
        cycle = error.args[1]
        first = next(name for name in cycle if name in config.nodes)
        problems.add(("nodes", first), f"the graph has a cycle: {' -> '.join(cycle)}")
    problems.raise_if_any()
    return valid


def check_node_ids(config: Config, asked: Iterable[str]) -> None:
    """Raises UsageError if a node that somebody asks for is not in the graph."""
    known = node_ids(config)
    for name in asked:
        if name not in known:
            raise unknown_node(name, known, config.name)


def _check_node(config: Config, name: str, own: CustomNode, problems: Problems) -> None:
    """Checks the nodes and outputs that a custom node names."""
    path: KeyPath = ("nodes", name)
    outputs = {node.id: node.outputs for node in list_nodes(config)}
    named = [
        *((other, (*path, "after", i)) for i, other in enumerate(own.after)),
        *((other, (*path, "before", i)) for i, other in enumerate(own.before)),
        *((other, (*path, "inputs", key)) for key, other in own.inputs.items()),
    ]
    for other, here in named:
        producer, _, output = other.partition(".")
        if producer not in outputs:
            what = f"there is no node {producer!r}"
            problems.unknown(here, what, producer, outputs)
            continue
        known = outputs[producer]
        if output and known is not None and output not in known:
            what = f"{producer} has no output {output!r}"
            problems.unknown(here, what, output, known)
    for key in own.inputs.keys() & own.parameters.keys():
        problems.add((*path, "parameters", key), f"{key!r} is also an input")
