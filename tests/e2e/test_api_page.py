"""Runs the snippets of docs/api.md, which are one program."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from runners.local import engine
from runners.local.processes.process_pool import ProcessPool
from runners.operations import run_lifecycle
from sluice.project import own_root

pytestmark = pytest.mark.e2e

PAGE = own_root() / "docs" / "api.md"


def test_snippets_run(
    project: Path,
    process_pool: ProcessPool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = partial(engine.LocalEngine, process_pool)
    for module in (engine, run_lifecycle):
        monkeypatch.setattr(module, "LocalEngine", shared)
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
