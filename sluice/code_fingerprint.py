"""The digest of the code that a function really runs, found without importing it.

Starting from a module, its imports are followed through the source, as far as they
lead to files below the given roots (this project and the user's). So touching a test,
a report or another model leaves the digest as it is. An entry that is installed
elsewhere counts with its whole package; other installed packages are not followed.

Dynamic imports (``importlib.import_module(name)``) cannot be seen: name such modules
as further entries.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sluice import digest
from sluice.errors import ConfigError


def modules_of(entries: Iterable[str], roots: Sequence[Path]) -> dict[str, Path]:
    """Returns the modules below ``roots`` that ``entries`` import, themselves included.

    Args:
      entries: dotted module names, such as ``pipeline.training``.
      roots: directories that hold top-level packages; the first that has a module
        wins.

    Returns:
      The source file of each module, sorted by the module's name. The ``__init__.py``
      of every parent package is one of them, since Python runs it too.

    Raises:
      ConfigError: a module's source is not valid Python.
    """
    found: dict[str, Path] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        path = _source_file(name, roots)
        if name in found or path is None:
            continue
        found[name] = path
        parent = name.rpartition(".")[0]
        if parent:
            waiting.append(parent)
        waiting.extend(_imports(name, path))
    return dict(sorted(found.items()))


def of(entries: Iterable[str], roots: Sequence[Path]) -> str:
    """Returns the digest over the names and contents of what ``entries`` run."""
    entries = list(entries)
    files = modules_of(entries, roots)
    for name in entries:
        if name not in files:
            files.update(_installed(name.partition(".")[0]))
    lines = [f"{name} {digest.of_file(path)}" for name, path in files.items()]
    return digest.of_bytes("\n".join(lines).encode())


def _installed(package: str) -> dict[str, Path]:
    """Returns every source file of a top-level package or module that is installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"there is no module {package!r}", hint="install it")
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        return {package: origin}
    # Named from the package's folder, so that it may be installed anywhere.
    return {
        f"{package}:{path.relative_to(origin.parent)}": path
        for path in sorted(origin.parent.rglob("*.py"))
    }


def _source_file(module: str, roots: Sequence[Path]) -> Path | None:
    for root in roots:
        base = root.joinpath(*module.split("."))
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def _imports(module: str, path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise ConfigError(
            f"{path.name} is not valid Python: {error.msg}",
            where=f"{path}:{error.lineno}",
            hint="correct the file and run again",
        ) from error
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parents = package.split(".")
    kept = parents[: len(parents) - (node.level - 1)]
    return ".".join(kept + ([node.module] if node.module else []))
