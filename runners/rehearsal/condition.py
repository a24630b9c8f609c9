"""Evaluates trigger conditions: the part of CEL that TFX compiles.

TFX writes comparisons of properties and URIs of input artifacts with literals, joined
by ``&&``, ``||`` and ``!``. Anything else is refused, so that a condition is never read
otherwise than by the service. (The one library, cel-python, resolves to a version of
2021 beside TFX 1.16, and brings six packages for eight operators.)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"""
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<=|>=|[<>!()\[\].+]))",
    re.IGNORECASE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_END = ""


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
    value = _Evaluation(condition, {"inputs": inputs}).result()
    if not isinstance(value, bool):
        raise ConditionError(f"its value is {value!r}, neither true nor false")
    return value


class _Evaluation:
    """A recursive descent over the tokens that computes as it reads.

    A part that cannot be computed is a ``ConditionError`` as a value: as in CEL, it
    does not matter where the other side of ``&&`` or ``||`` decides.
    """

    def __init__(self, condition: str, variables: Mapping[str, Any]) -> None:
        self._tokens = _tokens(condition)
        self._next = next(self._tokens)
        self._variables = variables

    def result(self) -> Any:
        value = self._or()
        if self._next[1] != _END:
            raise ConditionError(f"{self._next[1]!r} is not understood here")
        if isinstance(value, ConditionError):
            raise value
        return value

    def _take(self, *signs: str) -> str | None:
        """Returns the next token and moves on if it is one of these signs."""
        kind, token = self._next
        if kind != "sign" or token not in signs:
            return None
        self._next = next(self._tokens)
        return token

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            found = self._next[1] or "the end"
            raise ConditionError(f"{sign!r} expected instead of {found!r}")

    def _or(self) -> Any:
        return self._logical("||", self._and, decides=True)

    def _and(self) -> Any:
        return self._logical("&&", self._relation, decides=False)

    def _logical(self, sign: str, part: Callable[[], Any], decides: bool) -> Any:
        values = [part()]
        while self._take(sign):
            values.append(part())
        if len(values) == 1:
            return values[0]
        if any(value is decides for value in values):
            return decides
        for value in values:
            if not isinstance(value, bool):
                return _failed(value, f"{sign} needs true or false, not {value!r}")
        return not decides

    def _relation(self) -> Any:
        left = self._sum()
        sign = self._take(*_COMPARE)
        if sign is None:
            return left
        right = self._sum()
        for value in (left, right):
            if isinstance(value, ConditionError):
                return value
        if type(left) is not type(right) or not isinstance(left, str | float | bool):
            return ConditionError(f"{left!r} cannot be compared with {right!r}")
        return _COMPARE[sign](left, right)

    def _sum(self) -> Any:
        value = self._unary()
        while self._take("+"):
            more = self._unary()
            if isinstance(value, str) and isinstance(more, str):
                value += more
            else:
                value = _failed(value, f"{more!r} cannot be added to {value!r}")
        return value

    def _unary(self) -> Any:
        if not self._take("!"):
            return self._member()
        value = self._unary()
        if isinstance(value, bool):
            return not value
        return _failed(value, f"! needs true or false, not {value!r}")

    def _member(self) -> Any:
        value = self._primary()
        while sign := self._take(".", "["):
            kind, token = self._next
            wanted = "word" if sign == "." else None
            if wanted not in (None, kind) or kind == "sign":
                raise ConditionError(f"{token!r} is not understood after {sign!r}")
            self._next = next(self._tokens)
            if sign == "[":
                self._expect("]")
            value = _member_of(value, token if kind == "word" else _literal(token))
        if isinstance(value, int) and not isinstance(value, bool):
            # All numbers of a job are doubles.
            return float(value)
        return value

    def _primary(self) -> Any:
        if self._take("("):
            value = self._or()
            self._expect(")")
            return value
        kind, token = self._next
        if token == _END or kind == "sign":
            raise ConditionError(f"{token or 'the end'!r} is not understood here")
        self._next = next(self._tokens)
        if kind != "word":
            return _literal(token)
        if token in ("true", "false"):
            return token == "true"
        if token not in self._variables:
            raise ConditionError(f"{token!r} is unknown; only 'inputs' is")
        return self._variables[token]


def _tokens(condition: str) -> Iterator[tuple[str | None, str]]:
    position, text = 0, condition.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ConditionError(
                f"{text[position : position + 20]!r} is not understood"
            )
        position = found.end()
        yield found.lastgroup, found[found.lastgroup or 0]
    while True:
        yield None, _END


def _literal(token: str) -> str | float:
    return token[1:-1] if token[0] in "'\"" else float(token)


def _member_of(value: Any, key: str | float) -> Any:
    if isinstance(value, ConditionError):
        return value
    try:
        if isinstance(value, list):
            return value[int(key)]
        return value[key]
    except (KeyError, IndexError, TypeError, ValueError):
        return ConditionError(f"{key!r} does not exist")


def _failed(value: Any, text: str) -> ConditionError:
    """Returns an error as a value: the earlier one if there is one."""
    return value if isinstance(value, ConditionError) else ConditionError(text)
