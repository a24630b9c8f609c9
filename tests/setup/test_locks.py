"""The lock files satisfy the requirements, have hashes, and name no package index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
# Each lock, and what it was resolved from.
LOCK_KINDS = ("tfx", "dev", "gpu")
LOCKS = {"uv": "uv", "tfjs": "tfjs", "airflow": "airflow"}
for _tfx in ("1.16", "1.21"):
    LOCKS |= {f"{kind}-{_tfx}": kind for kind in LOCK_KINDS}
    LOCKS[f"tfx-{_tfx}"] = f"tfx-{_tfx}"
# A lock for several versions of Python says for which an entry is.
PINNED = re.compile(r"^([\w.-]+)==(\S+)(?: ; .*)? \\$", re.MULTILINE)


def asked_for(name: str) -> list[Requirement]:
    return [
        Requirement(line)
        for line in (REQUIREMENTS / f"{LOCKS[name]}.in").read_text().splitlines()
        if line and not line.startswith("#")
    ]


def locked_in(name: str) -> dict[str, str]:
    return dict(PINNED.findall((REQUIREMENTS / f"{name}.txt").read_text()))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_its_requirements(name):
    tfx = name.partition("-")[2]
    # Beside what a pipeline needs, the others have only what they add.
    locked = locked_in(name) | (locked_in(f"tfx-{tfx}") if tfx else {})
    for requirement in asked_for(name):
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not in {name}.txt: run make lock"
        assert requirement.specifier.contains(version), f"{requirement}: run make lock"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_hashes_and_names_no_index_and_no_path(name):
    text = re.sub(r"(?m)^\s*#.*\n", "", (REQUIREMENTS / f"{name}.txt").read_text())
    entries = re.split(r"(?m)^(?=\S)", text)[1:]
    assert entries
    for entry in entries:
        assert PINNED.match(entry), entry
        assert "--hash=sha256:" in entry, entry

    text = (REQUIREMENTS / f"{name}.txt").read_text()
    assert "://" not in text
    assert "index-url" not in text
    assert not re.search(r"(?m)^\s*#.*\s/\w", text)


@pytest.mark.parametrize("tfx", ["1.16", "1.21"])
def test_an_image_has_no_tools_and_no_package_is_locked_twice(tfx):
    own, tools, cuda = (locked_in(f"{name}-{tfx}").keys() for name in LOCK_KINDS)
    assert {"pytest", "mypy", "ruff", "playwright"} <= tools
    assert not own & (tools | cuda)
    assert cuda and all(name.startswith("nvidia-") for name in cuda)


@pytest.mark.parametrize("name", [name for name in LOCKS if name != "uv"])
def test_every_direct_dependency_is_explained(name):
    text = (ROOT / "docs" / "dependencies.md").read_text()
    unexplained = [
        requirement.name
        for requirement in asked_for(name)
        if f"\n| `{requirement.name}` |" not in text
    ]
    assert unexplained == []
