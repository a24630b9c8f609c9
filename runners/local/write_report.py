"""Writes the page of a run at its end; a failure becomes a note of the run."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from sluice.errors import ConfigError
from sluice.project import check_imports, own_root
from sluice.record.events import Note, ReportWritten
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.storage import atomic

_NAME = "report.html"
# Where the page of an unchanged run says so; see run.html.j2.
_NOTICES = "<!-- notices -->"


def prewarm() -> None:
    """Imports what draws a page: 0.4 s, while another process imports TFX."""
    with suppress(Exception):
        check_imports(("reports",))
        from reports import run_page

        run_page.prewarm()


def write_report(recorder: Recorder) -> None:
    """Draws ``report.html`` in the folder of a run that has ended; records its path."""
    try:
        uri = _draw(recorder.run_dir)
    except Exception as error:
        _record(recorder, f"{type(error).__name__}: {error}")
    else:
        _record(recorder, None, uri)


def _draw(run_dir: Path) -> str:
    try:
        check_imports(("reports",))
    except ConfigError:
        # Around a foreign pipeline, the user may have a package of this name.
        command = [sys.executable, "-m", "reports.run_page", os.path.abspath(run_dir)]
        done = subprocess.run(
            command, cwd=own_root(), check=True, capture_output=True, text=True
        )
        return done.stdout.strip()
    from reports import run_page

    return run_page.write_report(run_dir)


def repeat_report(recorder: Recorder, last: RunRecord) -> None:
    """Copies the page of an earlier run with the same results, and says so in it.

    This takes milliseconds, as a run that has nothing to do should.
    """
    before = recorder.run_dir.with_name(last.run_id) / _NAME
    now = recorder.record
    notice = (
        '<div class="banner notice info" role="note"><p>'
        f"Run {now.run_id} found at {now.ended_at} that nothing has changed since run "
        f"{last.run_id}: its results stand, and this is its page.</p></div>"
    )
    try:
        page = before.read_text("utf-8").replace(_NOTICES, notice, 1)
        path = recorder.run_dir / _NAME
        atomic.write_text(path, page)
    except OSError:
        # An earlier version wrote no page, or the disk is full.
        write_report(recorder)
    else:
        _record(recorder, None, str(path))


def _record(recorder: Recorder, problem: str | None, uri: str = "") -> None:
    # The run has its result, also on a disk that is full.
    with suppress(OSError):
        if problem is None:
            recorder.apply(ReportWritten(uri=uri))
        else:
            recorder.apply(Note(text=f"the report could not be written: {problem}"))
