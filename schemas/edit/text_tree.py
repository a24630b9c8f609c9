"""Positions of the fields in protobuf text, for editing parts of it.

Protobuf's parser returns no positions and drops comments. This parser returns only
positions, of texts that protobuf has parsed already; edits are verified by parsing the
new text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | \#[^\n]* )
  | (?P<string> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
  | (?P<mark> [{}<>\[\]:,;] )
  | (?P<word> [^\s{}<>\[\]:,;\#"']+ )
    """,
    re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Span:
    """Position of a scalar: ``text[start:end]``."""

    start: int
    end: int


@dataclass
class Message:
    """Content of a message: between its braces, or the whole text."""

    start: int
    end: int
    fields: list[Field] = field(default_factory=list)

    def all(self, name: str) -> list[Field]:
        """Returns the fields of a name, in the order of the text."""
        return [item for item in self.fields if item.name == name]


@dataclass
class Field:
    """A field: name, values, and the separator after it.

    Attributes:
      name: in the text.
      start: of the name.
      end: of the value, or of the comma or semicolon after it.
      values: one, or those of a list in brackets.
    """

    name: str
    start: int
    end: int
    values: list[Span | Message]

    def messages(self) -> list[Message]:
        return [item for item in self.values if isinstance(item, Message)]


class _Tokens:
    """Tokens, matches of ``_TOKEN``, with a lookahead of one."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens, None)

    def peek(self) -> str | None:
        return self._next and self._next[0]

    def peek_kind(self) -> str | None:
        return self._next and self._next.lastgroup

    def take(self) -> re.Match[str]:
        token = self._next
        if token is None:
            raise ValueError("the text ends within a field")
        self._next = next(self._tokens, None)
        return token


def text_tree(text: str) -> Message:
    """Returns the positions of all fields of a valid protobuf text.

    Raises:
      ValueError: the text cannot be parsed.
    """
    tokens = _Tokens(text)
    root = Message(0, len(text))
    while tokens.peek() is not None:
        root.fields.append(_field(tokens))
    return root


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"line {text.count(chr(10), 0, at) + 1} is not understood")
        at = match.end()
        if match.lastgroup != "space":
            yield match


def _field(tokens: _Tokens) -> Field:
    first = tokens.take()
    name = first[0]
    if name == "[":  # An extension's name, or Any's.
        while not name.endswith("]"):
            name += tokens.take()[0]
    elif first.lastgroup != "word":
        raise ValueError(f"a field cannot begin with {name}")
    if tokens.peek() == ":":
        tokens.take()
    values: list[Span | Message] = []
    if tokens.peek() == "[":
        tokens.take()
        while tokens.peek() != "]":
            values.append(_value(tokens))
            if tokens.peek() == ",":
                tokens.take()
        end = tokens.take().end()
    else:
        value = _value(tokens)
        values.append(value)
        end = value.end + isinstance(value, Message)  # After the brace.
    if tokens.peek() in (",", ";"):
        end = tokens.take().end()
    return Field(name, first.start(), end, values)


def _value(tokens: _Tokens) -> Span | Message:
    first = tokens.take()
    end = first.end()
    if first[0] in _CLOSING:
        message = Message(end, end)
        while tokens.peek() != _CLOSING[first[0]]:
            message.fields.append(_field(tokens))
        message.end = tokens.take().start()
        return message
    if first.lastgroup == "string":
        while tokens.peek_kind() == "string":  # Adjacent strings are one.
            end = tokens.take().end()
    elif first.lastgroup != "word":
        raise ValueError(f"a value cannot begin with {first[0]}")
    return Span(first.start(), end)
