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
LOCKS = ["tfx-1.16", "tfx-1.21", "uv"]
PINNED = re.compile(r"^([\w.-]+)==(\S+) \\$", re.MULTILINE)


def asked_for(name: str) -> list[Requirement]:
    requirements = []
    for line in (REQUIREMENTS / f"{name}.in").read_text().splitlines():
        if line.startswith("-r "):
            requirements += asked_for(line.removeprefix("-r ").removesuffix(".in"))
        elif line and not line.startswith("#"):
            requirements.append(Requirement(line))
    return requirements


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_its_requirements(name):
    locked = dict(PINNED.findall((REQUIREMENTS / f"{name}.txt").read_text()))
    for requirement in asked_for(name):
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not in {name}.txt: run make lock"
        assert requirement.specifier.contains(version), f"{requirement}: run make lock"


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_hash(name):
    text = re.sub(r"(?m)^\s*#.*\n", "", (REQUIREMENTS / f"{name}.txt").read_text())
    entries = re.split(r"(?m)^(?=\S)", text)[1:]
    assert entries
    for entry in entries:
        assert PINNED.match(entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_index_and_no_path(name):
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    assert "://" not in text
    assert "index-url" not in text
    assert not re.search(r"(?m)^\s*#.*\s/\w", text)


@pytest.mark.parametrize("name", ["tfx-1.16", "tfx-1.21"])
def test_every_direct_dependency_is_explained(name):
    text = (ROOT / "docs" / "dependencies.md").read_text()
    unexplained = [
        requirement.name
        for requirement in asked_for(name)
        if f"\n| `{requirement.name}` |" not in text
    ]
    assert unexplained == []
