"""The page of a run: one safe file, whatever the record has."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports import run_page
from reports.read_run import RunData, read_run
from reports.run_page import Section, render_run, write_report
from sluice.errors import WorkspaceError
from sluice.record.parts import NodeRecord, PushRecord

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


class Elements(HTMLParser):
    """Collects the elements of a page, and the text in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, str] = {}
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.inline[self._inside] = self.inline.get(self._inside, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def test_the_page_loads_nothing_and_allows_only_its_own_script_and_style(run_with):
    page = Elements(render_run(run_with()))
    loading = [
        name for _, attributes in page.found for name in attributes if name == "src"
    ]
    assert not loading and "link" not in [tag for tag, _ in page.found]
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in page.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for element in ("script", "style"):
        digest = hashlib.sha256(page.inline[element].encode()).digest()
        hashed = base64.b64encode(digest).decode()
        assert f"{element}-src 'sha256-{hashed}'" in policy
    assert not [attributes for _, attributes in page.found if "style" in attributes]


def test_hostile_text_is_only_text(run_with):
    hostile = "</script><script>alert(1)</script>\"'><img src=x>\u202e" + "x" * 10_000
    nodes = [NodeRecord(hostile, hostile, "failed", 1.0, reason=hostile)]
    pushes = [PushRecord(hostile, "pushed", 3, hostile)]
    run = run_with(
        pipeline=hostile,
        nodes=nodes,
        pushes=pushes,
        notes=[hostile],
        command=hostile,
        config={hostile: hostile},
        packages={hostile: hostile},
    )
    page = render_run(run)
    assert "<script>alert" not in page and "<img src=x" not in page
    assert "\u202e" not in page and "\\u202e" in page


def test_a_damaged_document_is_a_notice(run_with):
    run = run_with({"ingestion": {"records": 3}, "statistics": {"splits": 7}})
    (run.run_dir / "documents" / "1.ingestion.json").write_text('{"kind": [')
    page = render_run(run)
    assert "documents/1.ingestion.json cannot be read" in page
    assert "Version 3 was pushed" in page


def test_a_section_that_raises_is_a_notice(run_with, monkeypatch):
    def build(run: RunData) -> None:
        raise KeyError("splits")

    broken = Section("data", "Data", build)
    monkeypatch.setattr(run_page, "SECTIONS", (*run_page.SECTIONS, broken))
    page = render_run(run_with())
    assert "the section &#39;Data&#39; cannot be drawn" in page
    assert "KeyError: &#39;splits&#39;" in page
    assert "Version 3 was pushed" in page and 'id="data"' not in page


def test_the_report_is_written_into_the_folder_of_the_run(run_with):
    run_dir = run_with().run_dir
    written = Path(write_report(run_dir))
    assert written == run_dir / "report.html"
    assert written.read_text("utf-8").startswith("<!doctype html>")
    assert [path.name for path in run_dir.glob(".report*")] == []


def test_the_report_of_another_folder(run_with, tmp_path):
    target = tmp_path / "page.html"
    assert write_report(run_with().run_dir, target) == str(target)
    assert target.exists()


def test_a_folder_without_a_record(tmp_path):
    with pytest.raises(WorkspaceError, match=r"the record of run .* cannot be read"):
        write_report(tmp_path)


def test_the_entry_point_explains_what_it_cannot_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["run_page", "."])
    with pytest.raises(SystemExit) as ended:
        run_page.main()
    assert str(ended.value.code).startswith("error: the record of run ")
    assert f"where:    {tmp_path / 'run.json'}" in str(ended.value.code)


def test_the_previous_run_is_the_last_that_pushed(run_with):
    pushed = run_with(run_id="20260101T000000Z-aaaa")
    blocked = [PushRecord("/serving", "blocked")]
    run_with(run_id="20260102T000000Z-aaaa", pushes=blocked)
    last = run_with(run_id="20260103T000000Z-aaaa")
    run_with(run_id="20260104T000000Z-aaaa")
    with read_run(last.run_dir) as run:
        assert run.previous is not None
        assert run.previous.record.run_id == pushed.record.run_id
    with read_run(pushed.run_dir) as run:
        assert run.previous is None


def test_all_sections_have_distinct_anchors(run_with):
    ids = re.findall(r' id="([^"]+)"', render_run(run_with()))
    assert len(ids) == len(set(ids))


def test_the_end_of_a_log_is_read(run_with):
    run = run_with()
    (run.run_dir / "logs").mkdir()
    lines = [f"line {i}" for i in range(5000)]
    (run.run_dir / "logs" / "Trainer.log").write_text("\n".join(lines))
    tail = run.log_tail("Trainer").splitlines()
    assert len(tail) == 30 and tail[-1] == "line 4999"
    assert run.log_tail("Evaluator") == run.log_tail("null \0 character") == ""
