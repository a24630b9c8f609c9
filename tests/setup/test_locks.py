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
LOCKS = {
    "uv": ["uv"],
    **{f"tfx-{tfx}": [f"tfx-{tfx}", "dev"] for tfx in ("1.16", "1.21")},
    **{f"image-{tfx}": [f"tfx-{tfx}"] for tfx in ("1.16", "1.21")},
    **{f"image-{tfx}-gpu": [f"tfx-{tfx}", "gpu"] for tfx in ("1.16", "1.21")},
}
PINNED = re.compile(r"^([\w.-]+)==(\S+) \\$", re.MULTILINE)


def asked_for(name: str) -> list[Requirement]:
    return [
        Requirement(line)
        for source in LOCKS[name]
        for line in (REQUIREMENTS / f"{source}.in").read_text().splitlines()
        if line and not line.startswith("#")
    ]


def locked_in(name: str) -> dict[str, str]:
    return dict(PINNED.findall((REQUIREMENTS / f"{name}.txt").read_text()))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_its_requirements(name):
    locked = locked_in(name)
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


@pytest.mark.parametrize("tfx", ["1.16", "1.21"])
def test_an_image_has_the_tested_versions_and_no_tools(tfx):
    tested, image = locked_in(f"tfx-{tfx}"), locked_in(f"image-{tfx}")
    assert image.items() < tested.items()
    assert not {"pytest", "mypy", "ruff", "playwright"} & image.keys()
    cuda = locked_in(f"image-{tfx}-gpu").items() - image.items()
    assert cuda
    assert all(name.startswith("nvidia-") for name, _ in cuda)


@pytest.mark.parametrize("name", ["tfx-1.16", "tfx-1.21"])
def test_every_direct_dependency_is_explained(name):
    text = (ROOT / "docs" / "dependencies.md").read_text()
    unexplained = [
        requirement.name
        for requirement in asked_for(name)
        if f"\n| `{requirement.name}` |" not in text
    ]
    assert unexplained == []
