"""Finds the project root, and the source files of user code.

A project is a directory with ``configs/``. Data, schemas, user code and the workspace
are relative to it, not to the current directory. User code is looked up in files and
never imported here: importing it would run it, and load TensorFlow.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import symtable
import sys
from collections.abc import Sequence
from pathlib import Path

from sluice.errors import ConfigError, UsageError, did_you_mean

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
        "the current directory is not inside a project, which has configs/",
        where=start,
        hint="mkdir configs beside your data and move the config into it",
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
                raise _hidden(name, hiding)


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
            raise _hidden(name, origin)


def _hidden(name: str, hiding: Path) -> ConfigError:
    return ConfigError(
        f"this project's {name!r} shadows Sluice's package of that name",
        where=hiding,
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


def find_user_code(root: Path, reference: str) -> Path:
    """Returns the file that defines ``package.module:function``, importing nothing.

    Raises:
      ConfigError: it is not of that form, there is no such module, the module is not
        Python, or it binds no such name.
    """
    if not _REFERENCE.fullmatch(reference):
        raise ConfigError(
            f"{reference!r} is not an import path", expected="package.module:function"
        )
    module, name = reference.split(":")
    path = find_module(root, module)
    source = path.read_text(encoding="utf-8")
    try:
        symbols = symtable.symtable(source, str(path), "exec").get_symbols()
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise ConfigError(
            f"{path} is not valid Python: {error}", where=f"{path}:{line or 1}"
        ) from error
    bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    if name in bound or "__getattr__" in bound or "import *" in source:
        return path
    raise ConfigError(
        f"there is no function {name!r} in {path}", hint=did_you_mean(name, bound)
    )


def find_module(root: Path, module: str) -> Path:
    """Returns the source file of a module, importing nothing.

    Raises:
      ConfigError: there is no such module, or it is not Python.
    """
    importlib.invalidate_caches()
    locations = [str(Path(root).resolve()), *sys.path, str(own_root())]
    spec = None
    for part in module.split("."):  # ``find_spec`` of all would import the parents.
        spec = importlib.machinery.PathFinder.find_spec(part, locations)
        locations = list((spec and spec.submodule_search_locations) or ())
    if spec and spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    file = f"{root}/{module.replace('.', '/')}.py"
    raise ConfigError(f"there is no module {module!r}, neither {file} nor installed")
