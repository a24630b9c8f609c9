"""Types of YAML values that a type annotation of a component accepts.

Annotations are read from source code. One that names another type than those below
accepts everything: TFX checks it when the pipeline is created.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pipeline.config.yaml_values import (
    BOOLEAN,
    DECIMAL_NUMBER,
    LIST,
    MAPPING,
    NULL,
    STRING,
    WHOLE_NUMBER,
)

INPUT = "an output of a node, under 'inputs'"
# The YAML values that an annotation accepts, by the last part of its name.
_ACCEPTED = {
    name: frozenset(types)
    for names, types in (
        ("bool", [BOOLEAN]),
        ("int", [WHOLE_NUMBER]),
        ("float", [DECIMAL_NUMBER, WHOLE_NUMBER]),
        ("str Text", [STRING]),
        ("list List Sequence tuple Tuple", [LIST]),
        ("dict Dict Mapping MutableMapping", [MAPPING]),
        ("InputArtifact Channel BaseChannel OutputChannel", [INPUT]),
        ("RuntimeParameter", []),
    )
    for name in names.split()
}


def accepted_types(node: ast.expr) -> frozenset[str] | None:
    """Returns the types of YAML values that an annotation allows; None: not known."""
    match node:
        case ast.Constant(value=None):
            return frozenset([NULL])
        case ast.Constant(value=str(text)):
            try:
                return accepted_types(ast.parse(text, mode="eval").body)
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
                    types = accepted_types(inner)
                    # TFX compares these with isinstance: 3 is not a float.
                    is_float = ast.unparse(inner) == "float"
                    return frozenset([DECIMAL_NUMBER]) if is_float else types
            return accepted_types(node.value)
        case ast.Name() | ast.Attribute():
            text = ast.unparse(node)
            if "_pb2." in text:
                return frozenset([MAPPING, STRING])
            return _ACCEPTED.get(text.rpartition(".")[2])
    return None


def _any_of(nodes: Iterable[ast.expr]) -> frozenset[str] | None:
    types: set[str] = set()
    for node in nodes:
        if (accepted := accepted_types(node)) is None:
            return None
        types |= accepted
    return frozenset(types)
