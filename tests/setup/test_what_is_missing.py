"""What the setup prints if something is missing: one message with all remedies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def assert_one_message(done: subprocess.CompletedProcess[str], *expected: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("sluice: ") == 1
    assert len(done.stderr.splitlines()) < 25
    assert "Traceback" not in done.stderr
    for text in expected:
        assert text in done.stderr


def test_no_python_lists_searched_places_and_remedies(bare_machine):
    bare_machine.tool("g++", "#!/bin/sh\n")
    done = bare_machine.set_up()
    assert_one_message(
        done,
        "cannot set up TFX 1.16 here",
        "no Python 3.10 was found",
        "python3.10 on PATH (none)",
        f"{bare_machine.home}/.pyenv/versions/3.10.* (none)",
        "uv python find 3.10 (no uv on PATH)",
        "TFX 1.21 cannot stand in: it needs Python 3.12 (none was found)",
        "pyenv install 3.10",
        "uv python install 3.10",
        "apt-get install python3.10-dev",
    )
    assert "g++" not in done.stderr
    assert not (bare_machine.project / ".venv").exists()


@pytest.mark.parametrize("root", ["PYENV_ROOT", "HOME"])
def test_a_pyenv_python_that_is_not_activated_is_found(bare_machine, root):
    bare_machine.tool("python3.10", "#!/bin/sh\nexit 127\n")
    pyenv = bare_machine.home / (".pyenv" if root == "HOME" else "elsewhere")
    bare_machine.python("3.10.13", pyenv / "versions" / "3.10.13" / "bin")
    variables = {} if root == "HOME" else {"PYENV_ROOT": str(pyenv)}
    done = bare_machine.set_up(**variables)
    assert_one_message(done, "no C++ compiler")
    assert "no Python" not in done.stderr


def test_a_python_of_uv_is_found(bare_machine):
    python = bare_machine.python("3.10.13", bare_machine.home / "uv" / "bin")
    bare_machine.tool("uv", f'#!/bin/sh\n[ "$1" = python ] && echo {python}\n')
    done = bare_machine.set_up()
    assert_one_message(done, "no C++ compiler")
    assert "no Python" not in done.stderr


def test_no_compiler(bare_machine):
    bare_machine.python("3.10.13")
    assert_one_message(
        bare_machine.set_up(),
        "no C++ compiler: g++ is not on PATH, and pyfarmhash comes as source",
        "apt-get install g++",
    )


@pytest.mark.parametrize("args", [(), ("1.16",)])
def test_everything_missing_is_reported_at_once(bare_machine, args):
    done = bare_machine.set_up(*args)
    assert_one_message(done, "no Python 3.10 was found", "no C++ compiler")


def test_no_headers(bare_machine, tmp_path):
    """A real Python in a prefix without an include directory."""
    python = bare_prefix(tmp_path / "prefix")
    tfx = {"3.10": "1.16", "3.12": "1.21"}[MINOR]
    (bare_machine.bin / f"python{MINOR}").symlink_to(python)
    bare_machine.tool("g++", "#!/bin/sh\n")
    bare_machine.tool("getconf", "#!/bin/sh\necho glibc 2.39\n")
    assert_one_message(
        bare_machine.set_up(tfx),
        "has no C headers, which pyfarmhash is built with",
        f"expected: {tmp_path}/prefix/include/python{MINOR}/Python.h",
        f"apt-get install python{MINOR}-dev",
    )


def test_no_uv_and_a_python_without_pip(ready_machine, tmp_path):
    (ready_machine.bin / "uv").unlink()
    prefix = tmp_path / "prefix"
    python = bare_prefix(prefix, without=("ensurepip", "site-packages"))
    include = prefix / "include" / f"python{MINOR}"
    include.mkdir(parents=True)
    (include / "Python.h").touch()
    (ready_machine.bin / f"python{MINOR}").unlink()
    (ready_machine.bin / f"python{MINOR}").symlink_to(python)
    done = ready_machine.set_up()
    assert done.returncode == 2
    assert "no installer: uv is not on PATH" in done.stderr
    assert "has neither pip nor ensurepip" in done.stderr
    assert "the partial .venv" in done.stderr
    assert not list(ready_machine.project.glob(".venv*"))


@pytest.mark.parametrize(
    ("system", "machine"),
    [("Darwin", "arm64"), ("Darwin", "x86_64"), ("Linux", "aarch64")],
)
def test_a_platform_without_wheels(bare_machine, system, machine):
    bare_machine.tool(
        "uname", f"#!/bin/sh\n[ $1 = -s ] && echo {system} || echo {machine}\n"
    )
    assert_one_message(
        bare_machine.set_up(),
        f"no wheels for {system} on {machine}",
        "ml-metadata, tfx-bsl and tensorflow-data-validation",
        "an x86-64 Linux container or virtual machine",
    )


def test_tfx_1_21_on_an_older_glibc(bare_machine):
    bare_machine.python("3.12.1")
    bare_machine.tool("g++", "#!/bin/sh\n")
    assert_one_message(
        bare_machine.set_up("1.21"),
        "cannot set up TFX 1.21 here",
        "TFX 1.21's wheels need glibc 2.39 or later; here it is 2.36",
        "make TFX=1.16",
        "Debian 13 or Ubuntu 24.04",
    )


def test_tfx_1_21_replaces_1_16_with_a_message(bare_machine):
    bare_machine.python("3.12.1")
    bare_machine.tool("getconf", "#!/bin/sh\necho glibc 2.41\n")
    done = bare_machine.set_up()
    assert_one_message(done, "cannot set up TFX 1.21 here", "no C++ compiler")
    assert done.stderr.startswith(
        "No Python 3.10 was found, so this is TFX 1.21 on Python 3.12.1."
    )


def test_an_unknown_version(bare_machine):
    assert_one_message(
        bare_machine.set_up("1.17"),
        "TFX 1.17 is not one of the locked versions",
        "make TFX=1.16",
        "make TFX=1.21",
    )


@pytest.mark.parametrize("target", ["demo", "test", "lint"])
def test_make_runs_nothing_after_the_message(bare_machine, target):
    done = subprocess.run(
        ["make", "-C", bare_machine.project, target],
        env=bare_machine.environ(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("no Python 3.10 was found") == 1
    assert "\n+ " not in done.stderr, "a command ran all the same"


def bare_prefix(prefix: Path, without: tuple[str, ...] = ()) -> Path:
    """Makes a prefix for this Python without headers and some library folders."""
    name = f"python{MINOR}"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), prefix / "bin" / name)
    library = prefix / "lib" / name
    library.mkdir(parents=True)
    for path in Path(os.__file__).parent.iterdir():
        if path.name not in without:
            (library / path.name).symlink_to(path)
    return prefix / "bin" / name
