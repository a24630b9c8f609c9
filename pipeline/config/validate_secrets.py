"""Validates ``${env:NAME}`` references: spelling, allowed keys, set variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from pipeline.config.config import Config
from pipeline.config.problems import KeyPath, Problems
from sluice.secrets import references

# Such as ${ENV:X}, $env:X and {env.X}; neither ${env:X} nor its escape, $${env:X}.
_MISSPELT = re.compile(
    r"(?<!\$)(?!\$\{env:)(?:\$[{(]?|\{)\s*(?i:env)\s*[:.]\s*([A-Za-z_]\w*)[)}]?",
    re.ASCII,
)


def check_secrets(config: Config, problems: Problems) -> None:
    """Adds references that are misspelt, not allowed, or to variables not set."""
    for path, text, is_key in _strings(config.model_dump(by_alias=True), ()):
        misspelt = _MISSPELT.search(text)
        names = list(references(text))
        # Everything else is stored as it is used: paths and names in ML Metadata.
        if is_key or not _is_parameter(path):
            if names or misspelt:
                what = "this cannot refer to a secret (env:...): only values of "
                problems.add(path, what + "model_params and nodes.*.parameters can")
        elif misspelt:
            what = f"{misspelt[0]} looks like a secret reference but is not one"
            problems.add(path, what, hint=f"did you mean ${{env:{misspelt[1]}}}?")
        else:
            for name in names:
                if name is None or name not in os.environ:
                    what = f"the environment variable {name or '(no name)'} is not set"
                    hint = "export it, or write $${env:...} for the text itself"
                    problems.add(path, what, hint=hint)


def require_secrets(config: Config) -> None:
    """Raises one ``ConfigError`` for all references that cannot be resolved now."""
    problems = Problems(config.origin)
    check_secrets(config, problems)
    problems.raise_if_any()


def _is_parameter(path: KeyPath) -> bool:
    is_node_s = path[0] == "nodes" and path[2:3] == ("parameters",)
    return path[0] == "model_params" or is_node_s


def _strings(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str, bool]]:
    """Yields all strings of a config with their path, and whether each is a key."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), str(key), True
            yield from _strings(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))
