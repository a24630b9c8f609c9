"""Validates ``${env:NAME}`` references: allowed keys, and that variables are set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pipeline.config.config import Config
from pipeline.config.origin import KeyPath, key_path
from pipeline.config.problems import Problems
from sluice.secrets import references

# What a node's own process reads when it runs. Everything else is written down on the
# way there: paths in ML Metadata, names in pages and file names.
_PLACES = "model_params and nodes.*.parameters"
_FREE_TEXT = (("description",),)


def check_secrets(config: Config, problems: Problems) -> None:
    """Notes references to variables that are not set, or where none can stand."""
    document = config.model_dump(by_alias=True)
    for path, text in _strings(document, ()):
        if path in _FREE_TEXT:
            continue
        for name in references(text):
            shown = "${env:" + (name or "")
            if name is None:
                problems.add(
                    path,
                    "A secret reference names no environment variable.",
                    expected="${env:NAME}",
                    actual=shown,
                    hint=f"for the text itself, write ${shown}",
                )
            elif not _may_refer(path):
                problems.add(
                    path,
                    f"{key_path(path)} cannot refer to a secret: it is stored as it "
                    "is used.",
                    expected=f"references in {_PLACES} only",
                    actual=shown + "}",
                )
            elif name not in os.environ:
                problems.add(
                    path,
                    f"The environment variable {name} is not set.",
                    hint=f"export {name}=..., or write ${shown}}} for the text itself",
                )


def require_secrets(config: Config) -> None:
    """Raises one ``ConfigError`` for all references that cannot be resolved now."""
    problems = Problems(config.origin)
    check_secrets(config, problems)
    problems.raise_if_any()


def _may_refer(path: KeyPath) -> bool:
    """Whether a value is resolved there."""
    own = path[0] == "nodes" and path[2:3] == ("parameters",)
    return own or path[0] == "model_params"


def _strings(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))
