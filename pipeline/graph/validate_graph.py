"""Validates the graph of a config before TFX is imported.

Checks the names of nodes and outputs, cycles, and the components of custom nodes with
their arguments, as far as their source code shows them (``component_source``).
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pipeline.config.config import Config
from pipeline.config.custom_node import CustomNode
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from pipeline.config.validate import ValidConfig, validate_config
from pipeline.config.yaml_values import NULL, describe, one_of, type_hint, type_of
from pipeline.graph.component_source import Argument, ComponentSource, read_component
from pipeline.graph.custom_nodes import list_nodes, node_ids
from pipeline.graph.node_registry import NODES, Node
from pipeline.graph.parameter_type import INPUT
from sluice.compat import hidden_native_logs
from sluice.errors import ConfigError, did_you_mean, unknown_node
from sluice.project import find_user_code


def validate_pipeline(config: Config) -> ValidConfig:
    """Returns the config completed from its schema, its graph checked as well.

    Raises:
      ConfigError: something does not fit; names file, line and key path of each.
    """
    valid = validate_config(config)
    problems = Problems(config.origin)
    _check_names(config, problems)
    for name, own in config.nodes.items():
        _check_node(config, name, own, problems)
    _check_weights(config, problems)
    problems.raise_if_any()
    _check_order(config, problems)
    problems.raise_if_any()
    return valid


def _check_weights(config: Config, problems: Problems) -> None:
    """Adds a problem if a pretrained model's file of weights is not there.

    TensorFlow is imported in this case only: Keras knows what to fetch.
    """
    file = config.weights_file
    if file is None or file.is_file():
        return
    with hidden_native_logs(), warnings.catch_warnings():
        # Of the sizes of images that Keras expects.
        warnings.simplefilter("ignore")
        from pipeline.training.models.published_weights import find_published

        published = find_published(config.model)
    given = config.model_params["weights"]
    digest = f" (MD5 {published.md5})" if published.md5 else ""
    hint = f"download {published.url}{digest} to "
    if file.name == published.name:
        expected, hint = str(file), hint + str(file.parent)
    else:
        expected = f"a file below {config.root}, such as {published.name}"
        hint += f"{config.root / 'weights'} and write weights: weights/{published.name}"
    problems.add(
        ("model_params", "weights"),
        f"there is no file of weights {given!r}; nothing is downloaded by itself",
        expected=expected,
        hint=hint,
    )


def check_node_ids(config: Config, asked: Iterable[str]) -> None:
    """Raises UsageError if a node that somebody asks for is not in the graph."""
    known = node_ids(config)
    for name in asked:
        if name not in known:
            raise unknown_node(name, known, config.name)


def _check_names(config: Config, problems: Problems) -> None:
    for node in NODES:
        if node.id in config.nodes:
            problems.add(
                ("nodes", node.id),
                f"the pipeline has a node {node.id!r} already",
                hint="give yours another name",
            )


def _check_known(
    name: str, path: KeyPath, known: Sequence[str], problems: Problems
) -> bool:
    if name in known:
        return True
    problems.unknown(path, f"there is no node {name!r}", name, known)
    return False


def _check_node(config: Config, name: str, own: CustomNode, problems: Problems) -> None:
    path: KeyPath = ("nodes", name)
    nodes = {node.id: node for node in list_nodes(config)}
    for key in ("after", "before"):
        for index, other in enumerate(getattr(own, key)):
            _check_known(other, (*path, key, index), list(nodes), problems)
    for key, value in own.inputs.items():
        producer, _, output = value.partition(".")
        here = (*path, "inputs", key)
        if _check_known(producer, here, list(nodes), problems):
            _check_output(config, nodes[producer], output, here, problems)
    try:
        find_user_code(config.root, own.component, "component")
    except ConfigError as error:
        problems.add_error((*path, "component"), error)
        return
    source = read_component(config.root, own.component)
    if source is None:
        return
    if source.not_component:
        problems.add(
            (*path, "component"),
            f"{own.component} is not a TFX component",
            expected="a class with TFX's base class BaseComponent, or a function with "
            "@component",
            actual=f"{source.not_component}, {source.location}",
        )
        return
    _check_arguments(source, own, path, problems)


def _check_output(
    config: Config, node: Node, output: str, path: KeyPath, problems: Problems
) -> None:
    known = node.outputs
    if known is None:
        source = read_component(config.root, config.nodes[node.id].component)
        known = source.outputs if source else None
    if known is not None and output not in known:
        problems.add(
            path,
            f"{node.id} has no output {output!r}",
            expected=f"one of {', '.join(known)}" if known else "a node with outputs",
            hint=did_you_mean(output, known),
        )


def _check_arguments(
    source: ComponentSource, own: CustomNode, path: KeyPath, problems: Problems
) -> None:
    component = f"{own.component} ({source.location})"
    required = [name for name, item in source.arguments.items() if item.required]
    missing = [name for name in required if name not in {*own.inputs, *own.parameters}]
    for key, name, value in [
        *(("inputs", name, None) for name in own.inputs),
        *(("parameters", name, value) for name, value in own.parameters.items()),
    ]:
        here = (*path, key, name)
        argument = source.arguments.get(name)
        if argument is None and not source.takes_any:
            what = f"{component} has no argument {name!r}."
            problems.unknown(here, what, name, source.arguments)
            # A misspelt argument is one problem, not an unknown and a missing one.
            for meant in difflib.get_close_matches(name, missing, n=1):
                missing.remove(meant)
        elif key == "parameters" and name in own.inputs:
            problems.add(
                here,
                f"{name!r} is an input and a parameter",
                hint="leave one of them out",
            )
        elif argument is not None:
            _check_type(argument, here, value, problems)
    if missing:
        problems.add(
            path,
            f"{component} requires {', '.join(map(repr, missing))}",
            hint="add it to 'inputs', as <node>.<output>, or to 'parameters'",
        )


def _check_type(
    argument: Argument, path: KeyPath, value: Any, problems: Problems
) -> None:
    *_, key, name = path
    is_input = key == "inputs"
    given = INPUT if is_input else type_of(value)
    is_optional = given == NULL and not argument.required
    if not argument.accepts or given in argument.accepts or is_optional:
        return
    problems.add(
        path,
        f"the argument {name!r} has the wrong type",
        expected=f"{one_of(argument.accepts)}, as declared in {argument.location}",
        actual="an output of a node" if is_input else describe(value),
        hint=type_hint(value, argument.accepts),
    )


def _check_order(config: Config, problems: Problems) -> None:
    graph = {node.id: node.upstream for node in list_nodes(config)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        own = next(name for name in cycle if name in config.nodes)
        problems.add(
            ("nodes", own),
            "the graph has a cycle: " + " -> ".join(cycle) + "",
            hint="correct 'inputs', 'after' or 'before'",
        )
