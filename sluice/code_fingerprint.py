"""Digests of the modules that a function imports, found without importing them.

Imports are followed through the source, starting from a module, to files below the
given roots (this project and the user's). So an edit of a test, a report or another
model keeps the digest. An entry that is installed elsewhere counts with its whole
package; other installed packages are not followed.

``importlib.import_module`` and ``__import__`` are followed where their argument is a
literal, a relative one from the module that calls them. Of other dynamic imports, pass
the modules as further entries.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sluice.errors import ConfigError
from sluice.storage import digest
from sluice.storage.stat_cache import source_of

# Their versions count for every node.
PACKAGES = (
    "tfx",
    "tensorflow",
    "tensorflow-data-validation",
    "tensorflow-model-analysis",
    "tensorflow-transform",
    "tf-keras",
)

# The exec property that holds a node's code and packages; see
# ``pipeline.graph.create_pipeline``.
PROPERTY = "fingerprint"

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?", re.ASCII)


def modules_of(entries: Iterable[str], roots: Sequence[Path]) -> dict[str, Path]:
    """Returns the modules below ``roots`` that ``entries`` import, themselves included.

    Args:
      entries: dotted module names, such as ``pipeline.training.run_fn``.
      roots: directories that hold top-level packages; the first that has a module
        wins.

    Returns:
      The source file of each module, sorted by the module's name. The ``__init__.py``
      of every parent package is one of them, since Python runs it too.

    Raises:
      ConfigError: a module's source is not valid Python.
    """
    files: dict[str, Path] = {}
    waiting, seen = list(entries), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = source_file(name, roots)
        if path is None:
            continue
        files[name] = path
        parent = name.rpartition(".")[0]
        if parent:
            waiting.append(parent)
        waiting.extend(_imports(name, path))
    return dict(sorted(files.items()))


def digests_of(entries: Iterable[str], roots: Sequence[Path]) -> dict[str, str]:
    """Returns the digest of each module that ``entries`` import, by its name.

    An entry that is installed elsewhere counts with one digest of its whole package,
    named ``<package> (installed)``.

    Raises:
      ConfigError: there is no such module, or its source is not valid Python.
    """
    entries = list(entries)
    files = modules_of(entries, roots)
    digests = {name: source_of(path).digest for name, path in files.items()}
    for name in entries:
        if name not in files:
            package, content = _installed(name)
            digests[f"{package} (installed)"] = content
    return dict(sorted(digests.items()))


def of_file(path: Path, roots: Sequence[Path]) -> dict[str, str]:
    """Returns the digest of a file and, if it is a module, of what it imports."""
    path = path.resolve()
    if source_file(path.stem, [path.parent]) != path:
        return {path.name: digest.of_file(path)}
    return digests_of([path.stem], [path.parent, *roots])


def source_file(module: str, roots: Sequence[Path]) -> Path | None:
    """Returns the source of a module below the first root that has it."""
    *parents, last = module.split(".")
    for root in roots if last else ():
        folder = root.joinpath(*parents)
        for path in (folder / last / "__init__.py", folder / f"{last}.py"):
            if path.is_file():
                return path
    return None


def named_module(
    text: str, roots: Sequence[Path], is_module: bool = False
) -> str | None:
    """Returns the module below the roots that an import path refers to, or None.

    One word is enough only of a text that is known to name a module.
    """
    if not _IMPORT_PATH.fullmatch(text) or not (is_module or {".", ":"} & set(text)):
        return None
    module, colon, _ = text.partition(":")
    parts = module.split(".")
    # After the module: a function, or a class and its method.
    shortest = len(parts) if colon else max(1, len(parts) - 2)
    for depth in range(len(parts), shortest - 1, -1):
        name = ".".join(parts[:depth])
        if source_file(name, roots):
            return name
    return None


def _installed(module: str) -> tuple[str, str]:
    """Returns the installed package that holds a module, and its digest.

    A namespace package, such as ``google``, is many distributions: of these only the
    part that the module's name leads to counts.
    """
    package, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # A module that was made at run time, such as a notebook's.
        spec = None
    while spec is not None and spec.origin is None and inner:
        locations = list(spec.submodule_search_locations or ())
        package = f"{package}.{inner.pop(0)}"
        spec = importlib.machinery.PathFinder.find_spec(package, locations)
    if spec is None or spec.origin is None:
        raise ConfigError(f"there is no module {package!r}", hint="install it")
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        return package, digest.of_file(origin)
    # Named from the package's folder, so that it may be installed anywhere.
    lines = [
        f"{path.relative_to(origin.parent).as_posix()} {digest.of_file(path)}"
        for path in sorted(origin.parent.rglob("*.py"))
    ]
    return package, digest.of_bytes("\n".join(lines).encode())


def _imports(module: str, path: Path) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for level, base, names in source_of(path).imports:
        whole = _absolute(level, base, package)
        yield whole
        yield from (f"{whole}.{name}" for name in names)


def _absolute(level: int, module: str, package: str) -> str:
    if level == 0:
        return module
    parents = package.split(".")
    kept = parents[: len(parents) - (level - 1)]
    return ".".join(kept + ([module] if module else []))
