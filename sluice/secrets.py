"""Secrets by reference: ``${env:NAME}`` stands for an environment variable.

A config is stored with every run, and its values in ML Metadata and cache keys. So it
contains the reference, and the process that uses the value resolves it, in memory only.
``$${env:NAME}`` stands for the literal text ``${env:NAME}``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from sluice.errors import ConfigError

_REFERENCE = re.compile(r"(\$?)\$\{env:(?:([A-Za-z_][A-Za-z0-9_]*)\})?")
# Shorter values, such as "1", would match everywhere.
_MIN_REDACTED = 4

# The reference by each form in which a value may be printed.
_resolved: dict[str, str] = {}


def references(text: str) -> list[str | None]:
    """Returns the variables that a text refers to; None for an invalid reference."""
    return [name or None for escape, name in _REFERENCE.findall(text) if not escape]


def resolve(value: Any) -> Any:
    """Returns a value with the references in its strings replaced, at any depth.

    Raises:
      ConfigError: a variable is not set, or a reference names none.
    """
    if isinstance(value, str):
        return _REFERENCE.sub(_value_of, value)
    if isinstance(value, dict):
        return {key: resolve(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item) for item in value]
    return value


def resolve_exec_properties(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns a node's exec properties resolved, also inside those that are JSON."""
    return {key: _resolve_property(value) for key, value in properties.items()}


def redact(text: str) -> str:
    """Returns a text with all known secrets replaced by their references."""
    if not _resolved:
        return text
    longest_first = sorted(_resolved, key=len, reverse=True)
    forms = "|".join(map(re.escape, longest_first))
    return re.sub(forms, lambda match: _resolved[match[0]], text)


def remember(text: str) -> None:
    """Redacts the values that a text, such as a config, refers to from now on."""
    for name in references(text):
        if name is not None and name in os.environ:
            _remember(name, os.environ[name])


def are_known() -> bool:
    """Whether there is anything to redact."""
    return bool(_resolved)


class Redactor:
    """Redacts bytes that arrive in pieces; a secret may begin in one, end in another.

    What may be the beginning of a secret is held back until the next piece.
    """

    def __init__(self) -> None:
        self._held = b""

    def redact(self, piece: bytes, *, is_last: bool = False) -> bytes:
        """Returns what can be written; after the last piece nothing is held back."""
        forms = {_encoded(form): _encoded(name) for form, name in _resolved.items()}
        longest_first = b"|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        data = self._held + piece
        begun = max((_begun_at_end(data, form) for form in forms), default=0)
        cut = len(data) - begun
        for match in re.finditer(longest_first, data):
            if match.start() < cut < match.end():
                cut = match.start()
        self._held, rest = (b"", data[cut:]) if is_last else (data[cut:], b"")
        if len(rest) == begun >= _MIN_REDACTED:
            rest = next(forms[form] for form in forms if form.startswith(rest))
        data = data[:cut] + rest
        return re.sub(longest_first, lambda match: forms[match[0]], data)


def redact_output() -> None:
    """Redacts what Python code of this process prints and logs from now on.

    For the output of native code and subprocesses see ``Redactor``.
    """
    for stream in (sys.stdout, sys.stderr):
        # On the stream itself, since handlers of logs hold it already.
        setattr(stream, "write", partial(_write_redacted, stream.write))  # noqa: B010


def _write_redacted(write: Callable[[str], int], text: str) -> int:
    return write(redact(text))


def _value_of(match: re.Match[str]) -> str:
    escape, name = match.groups()
    if escape:
        return match[0][1:]
    if name is None:
        raise ConfigError(
            "${env: is not followed by a variable's name and }; "
            "for the text itself, write $${env:"
        )
    if name not in os.environ:
        raise ConfigError(f"the environment variable {name} is not set")
    _remember(name, os.environ[name])
    return os.environ[name]


def _remember(name: str, value: str) -> None:
    for part in (value, *map(str.strip, value.splitlines())):
        if len(part) >= _MIN_REDACTED:
            for form in (part, json.dumps(part)[1:-1], repr(part)[1:-1]):
                _resolved[form] = f"${{env:{name}}}"


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _begun_at_end(data: bytes, form: bytes) -> int:
    """Returns how many bytes of a form, but not all, are the end of the data."""
    most = min(len(form) - 1, len(data))
    return next((n for n in range(most, 0, -1) if data.endswith(form[:n])), 0)


def _resolve_property(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            parsed = json.loads(value)
        except ValueError:
            return resolve(value)
        found = resolve(parsed)
        return value if found == parsed else json.dumps(found)
    return resolve(value)
