"""Writes values into a config file, of which everything else stays as it is."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from pipeline.config.layer import SELECTORS
from sluice.storage import atomic


def write_values(file: Path, values: Mapping[str, Any]) -> None:
    """Writes values by key path; keys and sections that are missing are added.

    Raises:
      OSError: the file cannot be read or written.
    """
    text = file.read_text(encoding="utf-8-sig")
    # What stands beside these belonged to another one, see ``with_values``.
    for key in sorted(values, key=lambda key: key.rpartition(".")[2] not in SELECTORS):
        path, value = key.split("."), values[key]
        if path[-1] in SELECTORS:
            value = {path.pop(): value}
        text = _with_value(text, path, value)
    atomic.write_text(file, text)


def _with_value(text: str, path: list[str], value: Any) -> str:
    node: Any = YAML(typ="safe", pure=True).compose(text)
    line_end = len(text)  # Of the key that the node is the value of.
    for depth, name in enumerate(path):
        pairs = {key.value: (key, child) for key, child in node.value}
        below = value
        for part in reversed(path[depth + 1 :]):
            below = {part: below}
        if name not in pairs:
            return _insert(text, node, line_end, f"{name}: {_inline(below)}")
        key, child = pairs[name]
        if depth + 1 == len(path) or not isinstance(child, MappingNode):
            return _replace(text, key, child, _inline(below))
        node, line_end = child, text.find("\n", key.end_mark.index) + 1
    raise AssertionError("a path has a last part")


def _insert(text: str, node: Any, line_end: int, new: str) -> str:
    """Returns the text with a key in front of the others; at the end of a file."""
    if node.flow_style:
        at = node.start_mark.index + 1
        return f"{text[:at]}{new}{', ' if node.value else ''}{text[at:]}"
    indent = " " * node.start_mark.column
    gap = "" if text[:line_end].endswith("\n") else "\n"
    return f"{text[:line_end]}{gap}{indent}{new}\n{text[line_end:]}"


def _replace(text: str, key: Node, old: Any, new: str) -> str:
    """Returns the text with another value, beside the comment of the old one."""
    last, begin = old, old.start_mark.index
    while isinstance(last, MappingNode | SequenceNode) and not last.flow_style:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    end, between = last.end_mark.index, text[key.end_mark.index : begin]
    if "\n" in between:
        comment = re.search(r" *#.*", between)
        new += comment[0] if comment else ""
        return f"{text[: key.end_mark.index]}: {new}{text[end:]}"
    return f"{text[:begin]}{new}{text[end:]}"


def _inline(value: Any) -> str:
    """Returns a value in YAML, on one line."""
    yaml, text = YAML(typ="safe", pure=True), io.StringIO()
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump(value, text)
    return text.getvalue().removesuffix("...\n").strip()
