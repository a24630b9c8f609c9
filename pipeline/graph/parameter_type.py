"""Kinds of YAML values that a type annotation of a component accepts.

Annotations are read from source code. One that names another type than those below
accepts everything: TFX checks it when the pipeline is created.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

INPUT = "an output of a node, under 'inputs'"
NULL = "null"
_WHOLE, DECIMAL, STRING = "a whole number", "a decimal number", "a string"
_LIST, _MAPPING = "a list", "a mapping"
# The YAML values that an annotation accepts, by the last part of its name.
_ACCEPTED = {
    name: frozenset(kinds)
    for names, kinds in (
        ("bool", ["true or false"]),
        ("int", [_WHOLE]),
        ("float", [DECIMAL, _WHOLE]),
        ("str Text", [STRING]),
        ("list List Sequence tuple Tuple", [_LIST]),
        ("dict Dict Mapping MutableMapping", [_MAPPING]),
        ("InputArtifact Channel BaseChannel OutputChannel", [INPUT]),
        ("RuntimeParameter", []),
    )
    for name in names.split()
}


def accepted_kinds(node: ast.expr) -> frozenset[str] | None:
    """Returns the kinds of YAML values that an annotation allows; None: not known."""
    match node:
        case ast.Constant(value=None):
            return frozenset([NULL])
        case ast.Constant(value=str(text)):
            try:
                return accepted_kinds(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return None
        case ast.BinOp(op=ast.BitOr()):
            return _any_of([node.left, node.right])
        case ast.Subscript():
            inner = node.slice
            match ast.unparse(node.value).rpartition(".")[2]:
                case "Optional":
                    return _any_of([inner, ast.Constant(None)])
                case "Union" if isinstance(inner, ast.Tuple):
                    return _any_of(inner.elts)
                case "Parameter":
                    kinds = accepted_kinds(inner)
                    # TFX compares these with isinstance: 3 is not a float.
                    is_float = ast.unparse(inner) == "float"
                    return frozenset([DECIMAL]) if is_float else kinds
            return accepted_kinds(node.value)
        case ast.Name() | ast.Attribute():
            text = ast.unparse(node)
            if "_pb2." in text:
                return frozenset([_MAPPING, STRING])
            return _ACCEPTED.get(text.rpartition(".")[2])
    return None


def _any_of(nodes: Iterable[ast.expr]) -> frozenset[str] | None:
    kinds: set[str] = set()
    for node in nodes:
        if (accepted := accepted_kinds(node)) is None:
            return None
        kinds |= accepted
    return frozenset(kinds)


def kind_of_value(value: Any) -> str:
    """Returns the kind of a parameter's value, in words."""
    match value:
        case None:
            return NULL
        case bool():
            return "true or false"
        case int():
            return _WHOLE
        case float():
            return DECIMAL
        case str():
            return STRING
        case dict():
            return _MAPPING
    return _LIST
