"""Cached digests and imports of Python sources, for code fingerprints.

Parsing the 140 modules of a pipeline takes a third of a second, for every node.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import NamedTuple

from sluice.errors import ConfigError
from sluice.storage import digest
from sluice.storage.stat_cache import StatCache

# The environment variable that names the cache of the parent process.
CACHE_FILE = "SLUICE_SOURCE_FILES"
_cache: StatCache | None = None


class Source(NamedTuple):
    """A source file.

    Attributes:
      digest: of its content.
      imports: of each import the level (leading dots), the module, and the imported
        names.
    """

    digest: str
    imports: list[tuple[int, str, list[str]]]


def source_of(path: Path) -> Source:
    """Returns digest and imports of a source file.

    Raises:
      ConfigError: it is not valid Python.
      OSError: it cannot be read.
    """
    global _cache
    if _cache is None:
        cache_file = os.environ.get(CACHE_FILE)
        _cache = StatCache(Path(cache_file) if cache_file else None, _parse)
    content, imports = _cache.of(path)
    return Source(content, [(level, module, names) for level, module, names in imports])


def use_cache_file(cache_file: Path) -> None:
    """Sets this process's cache file."""
    global _cache
    _cache = StatCache(cache_file, _parse)


def save() -> None:
    """Writes the cache file."""
    if _cache is not None:
        _cache.save()


def _parse(path: Path) -> list:
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
