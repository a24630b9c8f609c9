"""The pages of the documentation name only files and sections that exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from runners.cli import main as front_door

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for folder in (ROOT, *(ROOT / "docs" / name for name in (".", "adr", "data_sets")))
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
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (ROOT / page).parent / path if path else ROOT / page
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_named_files_exist(page):
    named = re.findall(rf"`((?:{OURS})/[\w./-]+)`", (ROOT / page).read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_code_map_names_files():
    text = (ROOT / "docs" / "code_map.md").read_text()
    assert len(re.findall(rf"`(?:{OURS})/[\w/]+\.py`", text)) > 20


def _commands(page: Path) -> list[str]:
    """Returns the arguments of ``sluice`` in the code spans and blocks of a page."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / page).read_text())
    spans = re.findall(r"`([^`\n]+)`", text)
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [*spans, *(line for block in blocks for line in block.splitlines())]
    calls = [re.match(r"(?:[$] )?(?:\S*/)?sluice (\w[^#>]*)", line) for line in lines]
    return [call.group(1) for call in calls if call]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_and_their_options_exist(page):
    for line in _commands(page):
        command: click.Command = front_door.cli
        for word in re.split(r"[ |\[\]]+", line.strip()):
            if isinstance(command, click.Group):
                found = command.get_command(click.Context(command), word)
                assert found is not None, line
                command = found
            elif word.startswith("-") and len(word) > 1:
                options = {name for item in command.params for name in item.opts}
                assert word in options, line
