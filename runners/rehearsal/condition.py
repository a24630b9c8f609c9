"""Evaluates trigger conditions: the part of CEL that TFX compiles.

TFX writes comparisons of properties and URIs of input artifacts with literals, joined
by ``&&``, ``||`` and ``!``. Anything else is refused, so that a condition is never read
otherwise than by the service. (The one library, cel-python, resolves to a version of
2021 beside TFX 1.16, and brings six packages for eight operators.)
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

# Strings stay as they are. CEL's ``!`` binds as tightly as Python's ``~``.
_TOKEN = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"|&&|\|\||!(?!=)|[A-Za-z_]\w*|.", re.DOTALL)
_IN_PYTHON = {
    "&&": " and ",
    "||": " or ",
    "!": "~",
    "true": "True",
    "false": "False",
}
_NOT_CEL = {"and", "or", "not", "True", "False", "None", "~", "\\", "#"}
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
}


class ConditionError(ValueError):
    """The condition is not in the subset, or its values do not exist or fit."""


def holds(condition: str, inputs: Mapping[str, Any]) -> bool:
    """Returns whether a condition holds.

    Args:
      condition: in CEL.
      inputs: of the task, as its ``ExecutorInput`` has them.

    Raises:
      ConditionError: the service would refuse it, or fail to evaluate it.
    """
    tokens = _TOKEN.findall(condition.strip())
    for token in tokens:
        if token in _NOT_CEL:
            raise ConditionError(f"{token!r} is not understood")
    text = "".join(_IN_PYTHON.get(token, token) for token in tokens)
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ConditionError(f"{condition!r} is not understood: {error}") from None
    _check(tree, condition)
    value = _value(tree, inputs)
    if not isinstance(value, bool):
        raise ConditionError(f"its value is {value!r}, neither true nor false")
    return value


def _check(tree: ast.AST, condition: str) -> None:
    """Refuses what is not in the subset, also where it would not be evaluated."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name != "inputs":
                raise ConditionError(f"{name!r} is unknown; only 'inputs' is")
            case ast.Constant(value=str() | bool() | int() | float()):
                pass
            case ast.Compare(ops=[operation]) if type(operation) in _COMPARE:
                pass
            case (
                ast.Name()
                | ast.Attribute()
                | ast.Subscript(slice=ast.Constant())
                | ast.BoolOp()
                | ast.BinOp(op=ast.Add())
                | ast.UnaryOp(op=ast.Invert() | ast.USub())
                | ast.expr_context()
                | ast.boolop()
                | ast.operator()
                | ast.unaryop()
                | ast.cmpop()
            ):
                pass
            case _:
                kind = type(node).__name__
                raise ConditionError(f"{kind} in {condition!r} is not understood")


def _value(node: ast.expr, inputs: Mapping[str, Any]) -> Any:
    """Returns the value of a part; all numbers of a job are doubles."""
    match node:
        case ast.Name():
            return inputs
        case ast.Constant(value=value):
            return _double(value)
        case (
            ast.Attribute(value=of, attr=key)
            | ast.Subscript(value=of, slice=ast.Constant(value=key))
        ):
            try:
                return _double(_value(of, inputs)[key])
            except (KeyError, IndexError, TypeError):
                raise ConditionError(f"{key!r} does not exist") from None
        case ast.BoolOp(op=operation, values=parts):
            return _logical(parts, isinstance(operation, ast.Or), inputs)
        case ast.UnaryOp(op=operation, operand=operand):
            sign, kind = (
                ("-", float) if isinstance(operation, ast.USub) else ("!", bool)
            )
            value = _value(operand, inputs)
            if not isinstance(value, kind):
                raise ConditionError(f"{sign} does not take {value!r}")
            return -value if kind is float else not value
        case ast.BinOp(left=left, right=right):
            one, other = _value(left, inputs), _value(right, inputs)
            if not (isinstance(one, str) and isinstance(other, str)):
                raise ConditionError(f"{other!r} cannot be added to {one!r}")
            return one + other
        case ast.Compare(left=left, ops=[operation], comparators=[right]):
            one, other = _value(left, inputs), _value(right, inputs)
            if type(one) is not type(other) or not isinstance(one, str | float | bool):
                raise ConditionError(f"{one!r} cannot be compared with {other!r}")
            return _COMPARE[type(operation)](one, other)
    raise AssertionError(node)


def _logical(parts: list[ast.expr], decides: bool, inputs: Mapping[str, Any]) -> bool:
    """Returns the value of ``||`` or ``&&``, which one side may decide alone.

    As in CEL, the other sides need not have a value then.
    """
    errors = []
    for part in parts:
        try:
            value = _value(part, inputs)
            if value is decides:
                return decides
            if not isinstance(value, bool):
                raise ConditionError(f"&& and || do not take {value!r}")
        except ConditionError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return not decides


def _double(value: Any) -> Any:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_integer else value
