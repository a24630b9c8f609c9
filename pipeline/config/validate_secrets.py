"""Validates ``${env:NAME}`` references: spelling, allowed keys, set variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from pipeline.config.config import Config
from pipeline.config.problems import KeyPath, Problems, key_path
from sluice.secrets import references

# Everything else is stored as it is used: paths and names in ML Metadata and pages.
_ALLOWED = "only in values of model_params and nodes.*.parameters"
# Such as ${ENV:X}, $env:X and {env.X}; neither ${env:X} nor its escape, $${env:X}.
_MISSPELT = re.compile(
    r"(?<!\$)(?!\$\{env:)(?:\$[{(]?|\{)\s*(?i:env)\s*[:.]\s*([A-Za-z_]\w*)[)}]?",
    re.ASCII,
)


def check_secrets(config: Config, problems: Problems) -> None:
    """Adds references that are misspelt, not allowed, or to variables not set."""
    document = config.model_dump(by_alias=True)
    for path, text, is_key in _strings(document, ()):
        found = [
            (name, "${env:" + (f"{name}}}" if name else ""))
            for name in references(text)
        ]
        misspelt = list(_MISSPELT.finditer(text))
        if not _is_allowed(path) or is_key:
            found += [(match[1], match[0]) for match in misspelt]
            what = "a key" if is_key else key_path(path)
            for _, reference in found[:1]:
                problems.add(
                    path,
                    f"{what} cannot refer to a secret",
                    expected=f"references {_ALLOWED}",
                    actual=reference,
                )
            continue
        for match in misspelt:
            problems.add(
                path,
                f"{match[0]} looks like a secret reference but is not one",
                hint=f"did you mean ${{env:{match[1]}}}?",
            )
        for name, reference in found:
            if name is None:
                problems.add(
                    path,
                    "a secret reference names no environment variable",
                    expected="${env:NAME}",
                    actual=reference,
                    hint=f"for the text itself, write ${reference}",
                )
            elif name not in os.environ:
                problems.add(
                    path,
                    f"the environment variable {name} is not set",
                    hint=f"export {name}=..., or write ${reference} for the text "
                    "itself",
                )


def require_secrets(config: Config) -> None:
    """Raises one ``ConfigError`` for all references that cannot be resolved now."""
    problems = Problems(config.origin)
    check_secrets(config, problems)
    problems.raise_if_any()


def _is_allowed(path: KeyPath) -> bool:
    return path[0] == "model_params" or (
        path[0] == "nodes" and path[2:3] == ("parameters",)
    )


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
