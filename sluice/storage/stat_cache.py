"""Stat-keyed cache of file digests, and of the imports of Python sources.

As in Git's index, a file is unchanged if its size, inode, and times of modification and
change are. A file modified just before it was read is not cached: it may change again
within the clock's resolution. Parsing the 140 modules of a pipeline would take a third
of a second, for every node.
"""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sluice.errors import ConfigError
from sluice.node_environment import node_environment
from sluice.storage import atomic, digest

_SETTLED_S = 2.0
# Functions that import what a text names.
_IMPORTS = ("import_module", "__import__")


class StatCache:
    """Cache of one value per file, in a JSON file; a damaged one counts as empty."""

    def __init__(self, cache_file: Path | None, compute: Callable[[Path], Any]) -> None:
        """Reads the cache; None caches for this process only."""
        self._cache_file = cache_file
        self._compute = compute
        self._entries = _read(cache_file) if cache_file is not None else {}
        self._requested: set[str] = set()
        self._changed = False

    def of(self, path: Path) -> Any:
        """Returns the value of a file.

        Raises:
          OSError: the file cannot be read.
        """
        state = _state(path)
        self._requested.add(str(path))
        known = self._entries.get(str(path))
        if isinstance(known, list) and known[:-1] == state:
            return known[-1]
        value = self._compute(path)
        modified_s = state[1] / 1e9
        if _state(path) == state and abs(time.time() - modified_s) > _SETTLED_S:
            self._entries[str(path)] = [*state, value]
            self._changed = True
        return value

    def save(self) -> None:
        """Writes the cache, without the files that were not requested."""
        unused = self._entries.keys() - self._requested
        if self._cache_file is None or not (self._changed or unused):
            return
        for path in unused:
            del self._entries[path]
        atomic.write_json(self._cache_file, self._entries)
        self._changed = False


class FileDigests(StatCache):
    """Cache of the SHA-256 of each file's content, in hexadecimal."""

    def __init__(self, cache_file: Path) -> None:
        super().__init__(cache_file, digest.of_file)


def _read(cache_file: Path) -> dict[str, list]:
    try:
        known = json.loads(cache_file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


_sources: StatCache | None = None


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
    if _sources is None:
        known = node_environment().source_files
        use_sources_file(Path(known) if known else None)
    assert _sources is not None
    content, imports = _sources.of(path)
    return Source(content, [(level, module, names) for level, module, names in imports])


def use_sources_file(path: Path | None) -> None:
    """Sets this process's cache of sources; None caches for this process only."""
    global _sources
    _sources = StatCache(path, _parse)


def save_sources() -> None:
    """Writes the cache of sources."""
    if _sources is not None:
        _sources.save()


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
        elif isinstance(node, ast.Call):
            imports += _imports_of_call(node)
    return [digest.of_bytes(content), imports]


def _imports_of_call(call: ast.Call) -> Iterator[list]:
    """Yields the texts that ``import_module`` or ``__import__`` is called with."""
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if function not in _IMPORTS:
        return
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        text = getattr(argument, "value", None)
        if isinstance(text, str):
            name = text.lstrip(".")
            yield [len(text) - len(name), name, []]
