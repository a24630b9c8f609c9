"""The nodes of a config's pipeline, custom nodes (``nodes``) included.

A custom node names its component by import path: a class of TFX, a class of the user,
or a function with ``@component``. ``create_pipeline`` imports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from pipeline.config.config import Config, CustomNode
from pipeline.graph.node_registry import NODES, Node
from sluice import code_fingerprint
from sluice.node_kinds import leading_to
from sluice.project import own_root


def list_nodes(config: Config) -> list[Node]:
    """Returns the nodes of a pipeline: those of ``NODES``, then custom ones."""
    nodes = [
        *(node for node in NODES if node.is_in(config)),
        *(make_node(name, own) for name, own in config.nodes.items()),
    ]
    gated = {
        node.id: [name for name, own in config.nodes.items() if node.id in own.before]
        for node in nodes
    }
    return [replace(node, after=(*node.after, *gated[node.id])) for node in nodes]


def sort_nodes(config: Config) -> list[Node]:
    """Returns the nodes of a valid config's pipeline in topological order."""
    nodes = {node.id: node for node in list_nodes(config)}
    order = TopologicalSorter({name: node.upstream for name, node in nodes.items()})
    return [nodes[name] for name in order.static_order() if name in nodes]


def node_ids(config: Config) -> list[str]:
    """Returns the ids of all nodes of a config's pipeline."""
    return [node.id for node in list_nodes(config)]


def selected_nodes(config: Config, to_nodes: Collection[str]) -> list[str]:
    """Returns the ids of ``to_nodes`` and what is upstream of them; empty for all."""
    graph = {node.id: node.upstream for node in list_nodes(config)}
    selected = leading_to(to_nodes or graph, graph)
    return [name for name in graph if name in selected]


def modules_of(config: Config) -> list[str]:
    """Returns the modules of the nodes' components, executors and user functions.

    Without TFX's modules: the fingerprint has TFX's version instead.
    """
    found = [name for node in list_nodes(config) for name in node.modules(config)]
    return list(dict.fromkeys(found))


def files_of(config: Config) -> list[Path]:
    """Returns the files that the config names for training and custom nodes."""
    given = [own.parameters for own in config.nodes.values()]
    paths = named_files(config, [*given, config.model_params])
    if base := config.warm_start_path:
        paths += [path for path in (base, *sorted(base.rglob("*"))) if path.is_file()]
    return paths


def named_files(config: Config, value: Any) -> list[Path]:
    """Returns the files that a value names, also inside of JSON in a string."""
    # Other than a Path, os.path says False of a text that cannot be a path.
    paths = [config.root / text for text in _texts(value)]
    return [path for path in paths if os.path.isfile(path)]


def make_node(name: str, own: CustomNode) -> Node:
    """Returns a custom node in the form of the others."""
    return Node(
        name,
        own.component,
        own.inputs,
        arguments=lambda context: own.parameters,
        after=own.after,
        code=lambda config: _named_modules(own, config),
    )


def _named_modules(own: CustomNode, config: Config) -> tuple[str, ...]:
    """Returns the modules that a node's parameters name."""
    roots, texts = [own_root(), config.root], _texts(own.parameters)
    named = (code_fingerprint.named_module(text, roots) for text in texts)
    return tuple(dict.fromkeys(name for name in named if name))


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    if not isinstance(value, str):
        return []
    with suppress(ValueError):
        if value[:1] in ("{", "["):
            return _texts(json.loads(value))
    return [value]
