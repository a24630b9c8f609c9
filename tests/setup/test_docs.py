"""The pages of the documentation name only files and sections that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "adr")
    for path in folder.glob("*.md")
)
# Folders of this repository; other paths on the pages are those of a user's project.
OURS = (
    "benchmarks|components|docs|pipeline|requirements|runners|schemas|serving|setup"
    "|sluice|tests|tools"
)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in words}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (ROOT / page).parent / path if path else ROOT / page
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_named_files_exist(page: Path) -> None:
    named = re.findall(rf"`((?:{OURS})/[\w./-]+)`", (ROOT / page).read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_code_map_names_files() -> None:
    text = (ROOT / "docs" / "code_map.md").read_text()
    assert len(re.findall(rf"`(?:{OURS})/[\w/]+\.py`", text)) > 20
