"""Finds the project root, and the source files of user code.

A project is a directory with ``configs/``. Data, schemas, user code and the workspace
are relative to it, not to the current directory. User code is looked up in files and
never imported here: importing it would run it, and load TensorFlow.
"""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sluice.errors import ConfigError, UsageError, bounded

OWN_PACKAGES = (
    "sluice",
    "runners",
    "reports",
    "pipeline",
    "components",
    "serving",
    "schemas",
    "sample_data",
)

_MAX_LISTED = 20
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def own_root() -> Path:
    """Returns the directory that holds Sluice's own packages."""
    return Path(__file__).resolve().parents[1]


def find_root(start: Path) -> Path:
    """Returns the nearest directory, ``start`` or above it, that has ``configs/``.

    Raises:
      UsageError: no directory up to the file system's root has ``configs/``.
    """
    start = Path(start).resolve()
    for directory in (start, *start.parents):
        if (directory / "configs").is_dir():
            return directory
    raise UsageError(
        "the current directory is not inside a project",
        where=start,
        expected="a directory with configs/, here or above",
        hint="mkdir configs beside your data and move the config into it; "
        "data, schemas, user code and the workspace are found from there",
    )


def current_project(cwd: Path) -> Path:
    """Returns the root of the project around a directory, or else Sluice's checkout."""
    try:
        return find_root(cwd)
    except UsageError:
        return own_root()


def check_names(root: Path) -> None:
    """Rejects a project with modules or packages named like Sluice's own.

    Raises:
      ConfigError: there is one.
    """
    root = Path(root).resolve()
    if root == own_root():
        return
    for name in OWN_PACKAGES:
        for hiding in (root / name / "__init__.py", root / f"{name}.py"):
            if hiding.is_file():
                raise _hidden(name, hiding, OWN_PACKAGES)


def check_imports(names: Sequence[str]) -> None:
    """Rejects a process in which Python finds other packages under our names.

    Raises:
      ConfigError: there is such a package; nothing is imported.
    """
    for name in names:
        spec = importlib.util.find_spec(name)
        # A directory without Python files has no origin, and shadows nothing.
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin and origin.parent != own_root() / name:
            raise _hidden(name, origin, names)


def _hidden(name: str, hiding: Path, names: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"this project's {name!r} shadows Sluice's package of that name",
        where=hiding,
        expected="no package or module named " + ", ".join(names),
        hint=f"rename it, for example to my_{name}, and change its imports",
    )


def activate(root: Path) -> None:
    """Puts the project root first on Python's path.

    Raises:
      ConfigError: its code would shadow Sluice's; see ``check_names``.
    """
    root = Path(root).resolve()
    check_names(root)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()


def find_user_code(root: Path, reference: str, kind: str = "function") -> Path:
    """Returns the file that defines ``package.module:function``, importing nothing.

    Raises:
      ConfigError: it is not of that form, there is no such module, the module is not
        Python, or it binds no such name; suggests the nearest name.
    """
    if not _REFERENCE.fullmatch(reference):
        raise _not_an_import_path(root, reference, kind)
    module, name = reference.split(":")
    path = find_module(root, module)
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        location = f"{path}:{line}" if line else path
        raise ConfigError(
            f"{location} is not valid Python: {getattr(error, 'msg', error)}"
        ) from error
    bound = list(_bound_names(tree.body))
    if name in bound or {"*", "__getattr__"} & {*bound}:
        return path
    defined = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.ClassDef) and kind != "function")
    ]
    # The components of a package such as tfx.components are imported into it.
    known = [item for item in defined or bound if not item.startswith("_")]
    near = difflib.get_close_matches(name, known, n=1)
    raise ConfigError(
        f"there is no {kind} {name!r} in {path}",
        expected=f"one of {', '.join(bounded(known, _MAX_LISTED))}" if known else None,
        hint=f"did you mean {module}:{near[0]}?" if near else None,
    )


def _not_an_import_path(root: Path, reference: str, kind: str) -> ConfigError:
    module, _, name = reference.removesuffix("()").rpartition(".")
    hint = f"a module as Python imports it, without .py, a colon, and the {kind}'s name"
    if _REFERENCE.fullmatch(f"{module}:{name}"):
        try:
            find_module(root, reference)
            hint = f"add a colon and the {kind}'s name: {reference}:NAME"
        except ConfigError:
            hint = f"write a colon before the name: {module}:{name}"
    return ConfigError(
        f"{reference!r} is not an import path",
        expected=f"package.module:{kind}",
        hint=hint,
    )


def find_module(root: Path, module: str) -> Path:
    """Returns the source file of a module, importing nothing.

    Raises:
      ConfigError: there is no such module, or it is not Python; suggests the nearest.
    """
    importlib.invalidate_caches()
    parts = module.split(".")
    file, depth, locations = _search(root, parts)
    if file is not None:
        return file
    siblings = [found.name for found in pkgutil.iter_modules(locations)]
    near = difflib.get_close_matches(parts[depth], siblings, n=1)
    meant = [*parts[:depth], *near, *parts[depth + 1 :]]
    exists = near and _search(root, meant)[0] is not None
    raise ConfigError(
        f"there is no module {module!r}",
        expected=f"the file {root}/{'/'.join(parts)}.py, or an installed package",
        hint=f"did you mean {'.'.join(meant)!r}?"
        if exists
        else "check the spelling, or create the file",
    )


def _search(root: Path, parts: Sequence[str]) -> tuple[Path | None, int, list[str]]:
    """Searches a module part by part: ``find_spec`` would import its parents.

    Returns:
      Its source file, or None; the index of the last part that was searched, and the
      directories where.
    """
    locations = [str(Path(root).resolve()), *sys.path]
    for depth, part in enumerate(parts):
        spec = importlib.machinery.PathFinder.find_spec(part, locations)
        if spec is None and depth == 0 and part not in sys.modules:
            # An editable installation is known to a meta path finder only.
            spec = importlib.util.find_spec(part)
        if spec is None or depth == len(parts) - 1:
            break
        locations = list(spec.submodule_search_locations or ())
    origin = (spec and spec.origin) or ""
    return Path(origin) if origin.endswith(".py") else None, depth, locations


def _bound_names(body: list[ast.stmt]) -> Iterator[str]:
    """Yields the names that a module's top level binds; ``*`` for a star import."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.Assign():
                for target in node.targets:
                    yield from _assigned(target)
            case ast.AnnAssign():
                yield from _assigned(node.target)
            case ast.If() | ast.Try() | ast.With():
                for field in ("body", "orelse", "handlers", "finalbody"):
                    for inner in getattr(node, field, ()):
                        yield from _bound_names(
                            inner.body
                            if isinstance(inner, ast.ExceptHandler)
                            else [inner]
                        )


def _assigned(target: ast.expr) -> Iterator[str]:
    yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
