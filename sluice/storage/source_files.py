"""Cached digests and imports of Python sources.

Parsing the 140 modules of a pipeline takes a third of a second, and the cache asks for
them at every node.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import NamedTuple

from sluice.errors import ConfigError
from sluice.storage import digest
from sluice.storage.stat_cache import StatCache

# Names the file of a process's parent that remembers sources.
MEMORY_FILE = "SLUICE_SOURCE_FILES"
_memory: StatCache | None = None


class Source(NamedTuple):
    """A source file.

    Attributes:
      digest: of its content.
      imports: of each import the level (dots in front), the module, and the names that
        are taken from it.
    """

    digest: str
    imports: list[tuple[int, str, list[str]]]


def source_of(path: Path) -> Source:
    """Returns what a source holds.

    Raises:
      ConfigError: it is not valid Python.
      OSError: it cannot be read.
    """
    global _memory
    if _memory is None:
        memory = os.environ.get(MEMORY_FILE)
        _memory = StatCache(Path(memory) if memory else None, _look)
    content, imports = _memory.of(path)
    return Source(content, [(level, module, names) for level, module, names in imports])


def remember_in(memory: Path) -> None:
    """Has this process remember sources in a file, and takes over what it holds."""
    global _memory
    _memory = StatCache(memory, _look)


def save() -> None:
    """Writes what is new to the file."""
    if _memory is not None:
        _memory.save()


def _look(path: Path) -> list:
    content = path.read_bytes()
    try:
        tree = ast.parse(content)
    except SyntaxError as error:
        raise ConfigError(
            f"{path.name} is not valid Python: {error.msg}",
            where=f"{path}:{error.lineno}",
            hint="correct the file and run again",
        ) from error
    imports: list[list] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [[0, alias.name, []] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            imports.append([node.level, node.module or "", names])
    return [digest.of_bytes(content), imports]
