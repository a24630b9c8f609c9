"""The user's custom nodes (``nodes`` in a config), as entries of the node registry.

A component is named by import path: a class of TFX's, one of the user's own, or a
function with ``@component``. It is imported when the graph is drawn. What its source
shows before that is in ``pipeline.graph.validate_graph``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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


def nodes_of(config: Config) -> list[Node]:
    """Returns the nodes of a config's pipeline in topological order.

    Nodes that are in nobody's way stand as in ``NODES``, then as in the config.

    Raises:
      ConfigError: nodes wait for each other, or for one that there is not.
    """
    waiting = {node.id: node for node in unordered_nodes(config)}
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
                "nodes wait for each other: " + ", ".join(waiting),
                where=config.origin.place(("nodes",)),
            )
        ordered.append(waiting.pop(ready.id))
    return ordered


def unordered_nodes(config: Config) -> list[Node]:
    """Returns the nodes of a config's pipeline, our own first."""
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
    return [node.id for node in unordered_nodes(config)]


def leads_to(config: Config, node_id: str, others: Collection[str]) -> bool:
    """Whether a node is one of others, or one that they wait for."""
    waiting, known = list(others), {n.id: n for n in unordered_nodes(config)}
    seen: set[str] = set()
    while waiting:
        if (name := waiting.pop()) in known and name not in seen:
            seen.add(name)
            waiting += known[name].upstream
    return node_id in seen


def modules_of(config: Config) -> list[str]:
    """Returns the modules that draw and run the nodes of a config's pipeline.

    TFX's are left out: they count by its version.
    """
    found: list[str] = []
    for node in unordered_nodes(config):
        found += [node.component.partition(":")[0], *node.all_code(config)]
    return [name for name in dict.fromkeys(found) if not _is_of_tfx(name)]


def files_of(config: Config) -> list[Path]:
    """Returns the files that parameters of the config's custom nodes name."""
    texts = [text for own in config.nodes.values() for text in _texts(own.parameters)]
    return [path for text in texts if (path := _existing(config, text)).is_file()]


def reads_outside(config: Config) -> bool:
    """Whether a node of the config's own may read data that nobody else knows of.

    Such as a second ExampleGen: it has no inputs, or a folder or bucket as parameter.
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
    """Returns the path that a parameter may be; one without a file if it is none."""
    is_path = 0 < len(text) <= _MAX_PATH and text.isprintable()
    return config.root / (text if is_path else "configs/none")


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
