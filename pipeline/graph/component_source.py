"""Reads the arguments and outputs of a TFX component from its source code.

``sluice validate`` must neither import TFX, which takes seconds, nor run user code.
What the source does not show, such as a name that is assigned or comes from an
extension module, is left to ``create_pipeline``: the functions return None for it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.graph.parameter_type import accepted_types
from sluice.errors import ConfigError
from sluice.project import find_module

_MAX_DEPTH = 20
_BASE = ("tfx.dsl.components.base.base_component", "BaseComponent")
_OUTPUT = "OutputArtifact"
# TFX passes these to a function component itself.
_PASSED_BY_TFX = (_OUTPUT, "BeamComponentParameter")


@dataclass(frozen=True)
class Argument:
    """An argument of a component.

    Attributes:
      location: ``file:line`` of its declaration.
      required: whether it has no default.
      accepts: the types of YAML values that its annotation allows; None where that is
        not known.
    """

    location: str
    required: bool
    accepts: frozenset[str] | None


@dataclass(frozen=True)
class ComponentSource:
    """What the source of a component shows.

    Attributes:
      location: ``file:line`` of its definition.
      arguments: those that it takes, by name.
      takes_any: whether it takes others as well (``**kwargs``).
      outputs: names of its outputs; None where the source does not show them.
      not_component: what it is instead, if it is no TFX component.
    """

    location: str
    arguments: Mapping[str, Argument]
    takes_any: bool = True
    outputs: tuple[str, ...] | None = None
    not_component: str | None = None


def read_component(root: Path, reference: str) -> ComponentSource | None:
    """Returns what the source of a component shows; None if it is not found.

    Args:
      root: the project root.
      reference: ``package.module:name``; imports of the name are followed.
    """
    module, _, name = reference.partition(":")
    definition = _find(root, module, name)
    if definition is None:
        return None
    if isinstance(definition.node, ast.FunctionDef):
        return _read_function(definition, definition.node)
    return _read_class(root, definition, definition.node)


@dataclass(frozen=True)
class _Definition:
    """A class or function, and the module that defines it."""

    module: str
    file: Path
    node: ast.ClassDef | ast.FunctionDef

    def location(self, node: ast.stmt | ast.arg | None = None) -> str:
        line = (node or self.node).lineno
        cwd = Path.cwd()
        below = self.file.is_relative_to(cwd)
        return f"{self.file.relative_to(cwd) if below else self.file}:{line}"


def _find(root: Path, module: str, name: str, depth: int = 0) -> _Definition | None:
    """Returns the definition of ``name`` (may be dotted) in the scope of a module."""
    try:
        file = find_module(root, module)
        body = ast.parse(file.read_bytes()).body
    except (ConfigError, SyntaxError, ValueError):
        return None
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    head, _, rest = name.partition(".")
    found: list[_Definition | None] = []
    for node in _statements(body):
        match node:
            case ast.FunctionDef() | ast.ClassDef() if node.name == head:
                found.append(None if rest else _Definition(module, file, node))
            case ast.ImportFrom() | ast.Import() if depth < _MAX_DEPTH:
                for source, inner in _imported(node, package, name):
                    found.append(_find(root, source, inner, depth + 1))
            case ast.Assign() | ast.AnnAssign() if head in _names(node):
                found.append(None)
    # A name that is bound twice may be either.
    return found[0] if len(found) == 1 else None


def _imported(
    node: ast.ImportFrom | ast.Import, package: str, name: str
) -> Iterator[tuple[str, str]]:
    """Yields the module and the name in it that a name is imported from."""
    head, _, rest = name.partition(".")
    for alias in node.names:
        if head != (alias.asname or alias.name.partition(".")[0]):
            continue
        if isinstance(node, ast.Import):
            full = f"{alias.name}.{rest}" if alias.asname else name
            yield full.rpartition(".")[0], full.rpartition(".")[2]
            continue
        parts = package.split(".")[: len(package.split(".")) - node.level + 1]
        source = ".".join(
            [*(parts if node.level else ()), *filter(None, [node.module])]
        )
        # With a rest the name is a module, or a package.
        yield (f"{source}.{alias.name}", rest) if rest else (source, alias.name)


def _names(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    inner = (item for target in targets for item in ast.walk(target))
    return {item.id for item in inner if isinstance(item, ast.Name)}


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, also those inside a ``try`` or an ``if``."""
    for item in body:
        if isinstance(item, ast.Try):
            # TFX 1.21 imports components this way where an extra may be missing.
            yield from _statements(item.body)
        elif isinstance(item, ast.If):
            yield from _statements([*item.body, *item.orelse])
        else:
            yield item


def _read_class(
    root: Path, definition: _Definition, node: ast.ClassDef
) -> ComponentSource | None:
    if _is_component(root, definition, node) is False:
        return ComponentSource(
            definition.location(), {}, not_component="a class without TFX's base class"
        )
    constructor = _find_constructor(root, definition, node)
    if constructor is None:
        return None
    found, function = constructor
    arguments = _arguments(found, function.args)
    arguments.pop(next(iter(arguments), ""), None)
    takes_any = function.args.kwarg is not None
    return ComponentSource(definition.location(), arguments, takes_any)


def _is_component(
    root: Path, definition: _Definition, node: ast.ClassDef
) -> bool | None:
    """Whether a class is derived from ``BaseComponent``; None if that is not shown."""
    if (definition.module, node.name) == _BASE:
        return True
    answers: set[bool | None] = {None} if node.decorator_list else {False}
    for name, base in _bases(root, definition, node):
        if base is not None and isinstance(base.node, ast.ClassDef):
            answers.add(_is_component(root, base, base.node))
        elif not hasattr(builtins, name):
            answers.add(None)
    return True if True in answers else None if None in answers else False


def _find_constructor(
    root: Path, definition: _Definition, node: ast.ClassDef
) -> tuple[_Definition, ast.FunctionDef] | None:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return definition, item
    for _, base in _bases(root, definition, node):
        # The constructor of a further base counts only if this one has none.
        if base is None or not isinstance(base.node, ast.ClassDef):
            return None
        if found := _find_constructor(root, base, base.node):
            return found
    return None


def _bases(
    root: Path, definition: _Definition, node: ast.ClassDef
) -> Iterator[tuple[str, _Definition | None]]:
    """Yields name and definition of each base class; None where it is not found."""
    for base in node.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        # A class that is its own base is no Python, and would not end.
        found = None if name == node.name else _find(root, definition.module, name)
        yield name, found


def _read_function(
    definition: _Definition, node: ast.FunctionDef
) -> ComponentSource | None:
    """Returns the arguments of a function component; None for other decorators."""
    decorators = {ast.unparse(item).partition("(")[0] for item in node.decorator_list}
    if not decorators:
        return ComponentSource(
            definition.location(), {}, not_component="a function without @component"
        )
    if not any(name.rpartition(".")[2] == "component" for name in decorators):
        return None
    marked = {
        arg.arg: ast.unparse(arg.annotation) if arg.annotation else ""
        for arg in (*node.args.args, *node.args.kwonlyargs)
    }
    arguments = {
        name: argument
        for name, argument in _arguments(definition, node.args).items()
        if not any(mark in marked.get(name, "") for mark in _PASSED_BY_TFX)
    }
    # A return annotation declares outputs as well.
    outputs = tuple(name for name, text in marked.items() if _OUTPUT in text)
    return ComponentSource(
        definition.location(),
        arguments,
        takes_any=False,
        outputs=None if node.returns else outputs,
    )


def _arguments(definition: _Definition, args: ast.arguments) -> dict[str, Argument]:
    positional = [*args.posonlyargs, *args.args]
    bare = positional[: len(positional) - len(args.defaults)]
    bare += [
        arg
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is None
    ]
    return {
        arg.arg: Argument(
            definition.location(arg),
            arg in bare,
            None if arg.annotation is None else accepted_types(arg.annotation),
        )
        for arg in (*positional, *args.kwonlyargs)
    }
