"""Lists the nodes of a config's pipeline, custom nodes (``nodes``) included.

A custom node names its component by import path: a class of TFX, a class of the user,
or a function with ``@component``. ``create_pipeline`` imports it; ``validate_graph``
checks it before that, from its source code.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from pipeline.config.custom_node import CustomNode
from pipeline.graph.node_registry import NODES, Node
from sluice import code_fingerprint
from sluice.errors import ConfigError
from sluice.project import own_root

_MAX_PATH = 1024


def sort_nodes(config: Config) -> list[Node]:
    """Returns the nodes of a config's pipeline in topological order.

    Of the nodes that are ready, the first in the order of ``list_nodes`` is next.

    Raises:
      ConfigError: the graph has a cycle, or a node depends on one that does not exist.
    """
    waiting = {node.id: node for node in list_nodes(config)}
    ordered: list[Node] = []
    while waiting:
        ready = next(
            (
                node
                for node in waiting.values()
                if waiting.keys().isdisjoint(node.upstream)
            ),
            None,
        )
        if ready is None:
            raise ConfigError(
                "these nodes depend on each other, or on a node that does not exist: "
                + ", ".join(waiting),
                where=config.origin.location(("nodes",)),
            )
        ordered.append(waiting.pop(ready.id))
    return ordered


def list_nodes(config: Config) -> list[Node]:
    """Returns the nodes of a pipeline: those of ``NODES``, then custom ones."""
    gates: dict[str, list[str]] = {}
    for name, own in config.nodes.items():
        for guarded in own.before:
            gates.setdefault(guarded, []).append(name)
    nodes = [
        *(node for node in NODES if node.is_in(config)),
        *(_entry(name, own) for name, own in config.nodes.items()),
    ]
    return [
        replace(node, after=(*node.after, *gates.get(node.id, ()))) for node in nodes
    ]


def node_ids(config: Config) -> list[str]:
    """Returns the ids of all nodes of a config's pipeline."""
    return [node.id for node in list_nodes(config)]


def is_needed_for(config: Config, node_id: str, targets: Collection[str]) -> bool:
    """Whether a node is one of ``targets`` or upstream of one."""
    nodes = {node.id: node for node in list_nodes(config)}
    pending, seen = list(targets), set()
    while pending:
        if (name := pending.pop()) in nodes and name not in seen:
            seen.add(name)
            pending += nodes[name].upstream
    return node_id in seen


def selected_nodes(config: Config, to_nodes: Collection[str]) -> list[str]:
    """Returns the ids of ``to_nodes`` and what is upstream of them; empty for all."""
    return [
        name
        for name in node_ids(config)
        if not to_nodes or is_needed_for(config, name, to_nodes)
    ]


def modules_of(config: Config) -> list[str]:
    """Returns the modules of the nodes' components, executors and user functions.

    Without TFX's modules: the fingerprint has TFX's version instead.
    """
    found: list[str] = []
    for node in list_nodes(config):
        found += [node.component.partition(":")[0], *node.all_code(config)]
    return [name for name in dict.fromkeys(found) if not _is_of_tfx(name)]


def files_of(config: Config) -> list[Path]:
    """Returns the files that the config names for training and custom nodes."""
    given = [own.parameters for own in config.nodes.values()]
    paths = named_files(config, [*given, config.model_params])
    if base := config.warm_start_path:
        paths += [base, *sorted(base.rglob("*"))]
    return [path for path in paths if path.is_file()]


def named_files(config: Config, value: Any) -> list[Path]:
    """Returns the files that a value names, also inside of JSON in a string."""
    paths = [_existing(config, text) for text in _texts(value)]
    return [path for path in paths if path.is_file()]


def reads_outside(config: Config) -> bool:
    """Whether a custom node may read data that is no output of another node.

    True of a node without inputs, such as a second ExampleGen, and of one with a
    directory or URI as parameter.
    """
    return any(
        not own.inputs
        or any(
            "://" in text or _existing(config, text).is_dir()
            for text in _texts(own.parameters)
        )
        for own in config.nodes.values()
    )


def _entry(name: str, own: CustomNode) -> Node:
    return Node(
        name,
        own.component,
        own.inputs,
        arguments=lambda context: own.parameters,
        outputs=None,
        after=own.after,
        packages=code_fingerprint.PACKAGES,
        more_code=lambda config: _code(own, config),
    )


def _code(own: CustomNode, config: Config) -> tuple[str, ...]:
    """Returns the component's module and those that its parameters name."""
    roots = [own_root(), config.root]
    module = own.component.partition(":")[0]
    named = (
        code_fingerprint.named_module(text, roots) for text in _texts(own.parameters)
    )
    first = () if _is_of_tfx(module) else (module,)
    return (*first, *dict.fromkeys(name for name in named if name))


def _is_of_tfx(module: str) -> bool:
    return module.partition(".")[0] == "tfx"


def _existing(config: Config, text: str) -> Path:
    """Returns a parameter as a path; a path that does not exist where it is none."""
    is_path = 0 < len(text) <= _MAX_PATH and text.isprintable()
    return config.root / (text if is_path else "configs/none")


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
