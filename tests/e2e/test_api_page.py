"""Runs the snippets of docs/api.md, which are one program."""

import re

import pytest

from sluice.project import own_root

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

PAGE = own_root() / "docs" / "api.md"


def test_snippets_run(project, server, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(project)
    lines = PAGE.read_text().splitlines()
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(snippets) == sum(line == "```python" for line in lines) > 4
    names: dict[str, object] = {"__name__": "api"}
    for snippet in snippets:
        first = lines.index(snippet.splitlines()[0])
        # The line numbers of a failure are those of the page.
        exec(compile("\n" * first + snippet, PAGE, "exec"), names)
