"""The page of a run at its end: written, repeated, or a note; the run never fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports import run_page
from reports.environment import environment
from runners.local.write_report import prewarm, repeat_report, write_report
from sluice.record.events import GraphCompiled, GraphNode, RunStarted
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.storage import atomic

pytestmark = pytest.mark.unit


def begun(runs: Path, run_id: str) -> Recorder:
    (runs / run_id).mkdir(parents=True)
    recorder = Recorder(runs / run_id)
    recorder.apply(
        RunStarted(
            run_id=run_id,
            pipeline="digits",
            command="sluice run digits",
            destination="/serving",
            config={},
            workers=1,
            use_cache=True,
            forced=(),
            from_nodes=(),
            to_nodes=(),
            accept_data=None,
            resume_command=None,
        )
    )
    recorder.apply(GraphCompiled(nodes=(GraphNode("Gen", "Gen", ()),)))
    return recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = begun(tmp_path, "20260101T000000Z-aaaa")
    recorder.end(reason="was killed")
    yield recorder


def test_the_page_and_its_event(recorder: Recorder) -> None:
    write_report(recorder)
    page = recorder.run_dir / "report.html"
    assert RunRecord.load(recorder.run_dir).report_uri == str(page)
    assert "<h1>" in page.read_text("utf-8")


def test_a_page_that_cannot_be_drawn_is_a_note(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(address: Path) -> str:
        raise RecursionError("too deep")

    monkeypatch.setattr(run_page, "write_report", fail)
    before = recorder.record.status
    write_report(recorder)
    record = RunRecord.load(recorder.run_dir)
    assert record.status == before and record.report_uri is None
    assert record.notes == ["the report could not be written: RecursionError: too deep"]


def test_a_full_disk_does_not_fail_the_run(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "replacing", full)
    write_report(recorder)
    assert recorder.record.report_uri is None


def test_an_unchanged_run_repeats_the_page(recorder: Recorder, tmp_path: Path) -> None:
    write_report(recorder)
    again = begun(tmp_path, "20260102T000000Z-bbbb")
    again.end_unchanged(recorder.record)
    repeat_report(again, recorder.record)
    text = (again.run_dir / "report.html").read_text("utf-8")
    assert (
        "Run 20260102T000000Z-bbbb found at "
        f"{again.record.ended_at} that nothing has changed since run "
        "20260101T000000Z-aaaa: its results stand, and this is its page."
    ) in text
    assert again.record.report_uri == str(again.run_dir / "report.html")


def test_an_unchanged_run_draws_a_page_that_is_missing(
    recorder: Recorder, tmp_path: Path
) -> None:
    again = begun(tmp_path, "20260102T000000Z-bbbb")
    again.end_unchanged(recorder.record)
    repeat_report(again, recorder.record)
    text = (again.run_dir / "report.html").read_text("utf-8")
    assert "run 20260102T000000Z-bbbb" in text


def test_prewarming_compiles_the_templates_and_never_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prewarm()
    loaded = environment().cache
    assert loaded is not None
    names = {name for _, name in loaded}
    assert {"run.html.j2", "page.css.j2", "sections/verdict.html.j2"} <= names

    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(run_page, "import_module", fail)
    prewarm()
