"""Applies an edit to schema text, keeping comments, order and layout.

New values are inserted after the last one of their domain, new fields after the last
one of their message, new features at the end. Nothing else changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Owner, Put, Replace
from schemas.edit.schema_text import feature_block, one_line
from schemas.edit.text_tree import Field, Message, Span, text_tree

# The rest of a field's line: blanks and a comment.
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_COMMENT = re.compile(r"""#[^\r\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")


def edit_text(text: str, edits: Iterable[Edit]) -> str:
    """Returns the text of a schema with the edits.

    Args:
      text: valid protobuf text.
      edits: in order.

    Raises:
      KeyError: the text does not have what an edit changes.
      ValueError: the text cannot be parsed.
    """
    for edit in edits:
        match edit:
            case AddFeature():
                text = _append(text, edit.feature)
            case Put():
                text = _put(text, edit)
            case AddValues():
                text = _add_values(text, edit)
            case Replace():
                text = _replace(text, edit)
    return text


def _append(text: str, feature: schema_pb2.Feature) -> str:
    newline = _newline(text)
    if text and not text.endswith("\n"):
        text += newline
    return text + newline.join(["", *feature_block(feature), ""])


def _put(text: str, edit: Put) -> str:
    message = _find(text, edit.owner)
    rest: Any = edit.message()
    for step in edit.path:
        # The rest of the path as text, such as `presence { min_fraction: 0.9 }`.
        rendered, rest = one_line(rest), getattr(rest, step)
        fields = message.all(step)
        if not fields:
            return _insert(text, message, None, [rendered])
        value = fields[-1].values[-1]
        if isinstance(value, Span):
            new = rendered.partition(": ")[2]
            return text[: value.start] + new + text[value.end :]
        message = value
    raise ValueError(f"{'.'.join(edit.path)} is no single value")


def _add_values(text: str, edit: AddValues) -> str:
    message = _find(text, edit.owner)
    if edit.owner.kind == "feature":
        message = message.all("string_domain")[-1].messages()[-1]
    present = message.all("value")
    lines = [one_line(schema_pb2.StringDomain(value=[value])) for value in edit.values]
    return _insert(text, message, present[-1] if present else None, lines)


def _replace(text: str, edit: Replace) -> str:
    message = _find(text, edit.owner)
    fields = message.all(edit.old)
    if not fields:
        raise KeyError(f"{edit.owner.name}: no {edit.old}")
    field = fields[-1]
    new = schema_pb2.Feature()
    getattr(new, edit.new).CopyFrom(getattr(edit.message, edit.new))
    lines = _comments(text[field.start : field.end])
    indent = text[_line_start(text, field.start) : field.start]
    if lines and indent.strip():
        # A comment extends to the end of its line.
        indent = indent[: len(indent) - len(indent.lstrip())] + "  "
        lines.insert(0, "")
    between = _newline(text) + indent
    return (
        text[: field.start] + between.join([*lines, one_line(new)]) + text[field.end :]
    )


def _insert(text: str, message: Message, after: Field | None, lines: list[str]) -> str:
    """Inserts fields after one of a message, or its last, in the same layout."""
    after = after or (message.fields[-1] if message.fields else None)
    if after is None:
        gap = "" if text[message.start : message.start + 1].isspace() else " "
        new = " ".join(["", *lines]) + gap
        return text[: message.start] + new + text[message.start :]
    indent = text[_line_start(text, after.start) : after.start]
    rest = _REST_OF_LINE.match(text, after.end)
    if indent.strip() or rest is None or not rest.group().endswith("\n"):
        return text[: after.end] + " ".join(["", *lines]) + text[after.end :]
    block = "".join(f"{indent}{line}{_newline(text)}" for line in lines)
    return text[: rest.end()] + block + text[rest.end() :]


def _find(text: str, owner: Owner) -> Message:
    for item in text_tree(text).all(owner.kind):
        for message in item.messages():
            if _name(text, message) == owner.name:
                return message
    raise KeyError(f"no {owner.kind} {owner.name!r}")


def _name(text: str, message: Message) -> str | None:
    for item in message.all("name"):
        value = item.values[-1]
        literal = text[value.start : value.end]
        return text_format.Parse(f"name: {literal}", schema_pb2.Feature()).name
    return None


def _comments(text: str) -> list[str]:
    return [match for match in _COMMENT.findall(text) if match.startswith("#")]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
