"""Checks the graph of a config before TFX is imported.

Names of nodes and outputs, cycles, and the import paths of components. The arguments of
a component are read off its source; where the source does not show them, such as of a
class that inherits its constructor, the prepare job finds out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from pipeline.config.config import Config
from pipeline.config.custom_node import CustomNode
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from pipeline.config.validate import ValidConfig, validate_config
from pipeline.graph.custom_nodes import list_nodes, node_ids
from pipeline.graph.node_registry import NODES, Node
from sluice.errors import ConfigError, did_you_mean, unknown_node
from sluice.project import find_module, find_user_code

_DEPTH = 5
_OUTPUT = "OutputArtifact"
# What TFX gives a function component itself.
_GIVEN = (_OUTPUT, "BeamComponentParameter")


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
    problems.raise_if_any()
    _check_order(config, problems)
    problems.raise_if_any()
    return valid


def check_node_ids(config: Config, asked: Iterable[str]) -> None:
    """Raises UsageError if a node that somebody asks for is not in the graph."""
    known = node_ids(config)
    for name in asked:
        if name not in known:
            raise unknown_node(name, known, config.name)


def _check_names(config: Config, problems: Problems) -> None:
    known = node_ids(config)
    named = [("retries", name) for name in config.retries.nodes]
    named += [("memory_mb", name) for name in config.memory_mb.nodes]
    for section, name in named:
        _check_known(name, (section, "nodes", name), known, problems)
    for node in NODES:
        if node.id in config.nodes:
            problems.add(
                ("nodes", node.id),
                f"The pipeline has a node {node.id!r} already.",
                hint="give yours another name",
            )


def _check_known(
    name: str, path: KeyPath, known: Sequence[str], problems: Problems
) -> bool:
    if name in known:
        return True
    problems.unknown(path, f"There is no node {name!r}.", name, known)
    return False


def _check_node(config: Config, name: str, own: CustomNode, problems: Problems) -> None:
    path: KeyPath = ("nodes", name)
    nodes = {node.id: node for node in list_nodes(config)}
    for key in ("after", "before"):
        for index, other in enumerate(getattr(own, key)):
            _check_known(other, (*path, key, index), list(nodes), problems)
    for key, source in own.inputs.items():
        maker, _, output = source.partition(".")
        here = (*path, "inputs", key)
        if _check_known(maker, here, list(nodes), problems):
            _check_output(config, nodes[maker], output, here, problems)
    try:
        find_user_code(config.root, own.component, "component")
    except ConfigError as error:
        problems.add_error((*path, "component"), error)
        return
    if found := signature_of(config.root, own.component):
        _check_arguments(found, own, path, problems)


def _check_output(
    config: Config, node: Node, output: str, path: KeyPath, problems: Problems
) -> None:
    known = node.outputs
    if known is None:
        found = signature_of(config.root, config.nodes[node.id].component)
        known = found.outputs if found else None
    if known is not None and output not in known:
        problems.add(
            path,
            f"{node.id} has no output {output!r}.",
            expected=f"one of {', '.join(known)}" if known else "a node with outputs",
            hint=did_you_mean(output, known),
        )


def _check_arguments(
    found: Signature, own: CustomNode, path: KeyPath, problems: Problems
) -> None:
    for key in ("inputs", "parameters"):
        for argument in getattr(own, key):
            if not found.any and argument not in found.arguments:
                what = f"{own.component} takes no argument {argument!r}."
                here = (*path, key, argument)
                problems.unknown(here, what, argument, found.arguments)
    for argument in own.parameters:
        if argument in own.inputs:
            problems.add(
                (*path, "parameters", argument),
                f"{argument!r} is an input and a parameter.",
                hint="leave one of them out",
            )
    if missing := set(found.required) - {*own.inputs, *own.parameters}:
        names = [name for name in found.required if name in missing]
        problems.add(
            path,
            f"{own.component} is not given {', '.join(map(repr, names))}.",
            hint="add it to 'inputs', as <node>.<output>, or to 'parameters'",
        )


def _check_order(config: Config, problems: Problems) -> None:
    graph = {node.id: node.upstream for node in list_nodes(config)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        own = next(name for name in cycle if name in config.nodes)
        # The sorter lists each before the one that waits for it.
        problems.add(
            ("nodes", own),
            "Nodes wait for each other: " + " waits for ".join(reversed(cycle)) + ".",
            hint="correct 'inputs', 'after' or 'before'",
        )


@dataclass(frozen=True)
class Signature:
    """What the source of a component shows of its arguments.

    Attributes:
      arguments: the names of all that it takes.
      required: those without a default.
      any: whether it takes others as well.
      outputs: the names of its outputs; None where the source does not show them.
    """

    arguments: tuple[str, ...]
    required: tuple[str, ...]
    any: bool = False
    outputs: tuple[str, ...] | None = None


def signature_of(root: Path, reference: str, depth: int = 0) -> Signature | None:
    """Returns the arguments of a component, read off its source; None if not shown.

    Args:
      root: the project root.
      reference: ``package.module:name``; followed where the module imports the name.
      depth: how often it was followed already.

    Raises:
      ConfigError: there is no such module.
    """
    module, _, name = reference.partition(":")
    path = find_module(root, module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _statements(ast.parse(path.read_bytes()).body):
        match node:
            case ast.FunctionDef(name=found) if found == name:
                return _of_function(node)
            case ast.ClassDef(name=found) if found == name:
                return _of_class(node)
            case ast.ImportFrom(level=0 | 1) if depth < _DEPTH:
                for alias in node.names:
                    if name == (alias.asname or alias.name):
                        parts = (package, node.module) if node.level else (node.module,)
                        inner = ".".join(part for part in parts if part)
                        return _followed(root, f"{inner}:{alias.name}", depth)
    return None


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, also those that a try or an if holds."""
    for item in body:
        if isinstance(item, ast.Try):
            # TFX 1.21 imports its components so, where an extra may be missing.
            yield from _statements(item.body)
        elif isinstance(item, ast.If):
            yield from _statements([*item.body, *item.orelse])
        else:
            yield item


def _followed(root: Path, reference: str, depth: int) -> Signature | None:
    try:
        return signature_of(root, reference, depth + 1)
    except ConfigError:
        return None  # A name that is a module itself, or made at run time.


def _of_class(node: ast.ClassDef) -> Signature | None:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return _arguments(item.args, skip=1)
    return None


def _of_function(node: ast.FunctionDef) -> Signature | None:
    """Returns the arguments of a function with TFX's decorator."""
    decorators = {ast.unparse(item).partition("(")[0] for item in node.decorator_list}
    if not any(name.rpartition(".")[2] == "component" for name in decorators):
        return None
    marked = {
        arg.arg: ast.unparse(arg.annotation) if arg.annotation else ""
        for arg in (*node.args.args, *node.args.kwonlyargs)
    }
    given = {
        name for name, text in marked.items() if any(mark in text for mark in _GIVEN)
    }
    found = _arguments(node.args, skip=0)
    return Signature(
        tuple(name for name in found.arguments if name not in given),
        tuple(name for name in found.required if name not in given),
        # What it returns are outputs as well.
        outputs=None
        if node.returns
        else tuple(name for name, text in marked.items() if _OUTPUT in text),
    )


def _arguments(args: ast.arguments, skip: int) -> Signature:
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    bare = positional[skip : len(positional) - len(args.defaults)]
    bare += [
        arg.arg
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is None
    ]
    names = [*positional[skip:], *(arg.arg for arg in args.kwonlyargs)]
    return Signature(tuple(names), tuple(bare), any=args.kwarg is not None)
