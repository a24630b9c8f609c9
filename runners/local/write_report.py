"""Writes the page of a run at its end; a failure becomes a note of the run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import ConfigError, WorkspaceError
from sluice.project import check_imports, own_root

if TYPE_CHECKING:
    from sluice.record.run_record import RunRecord


def prepare_report() -> None:
    """Imports what draws the page in a thread, and compiles its templates.

    Otherwise a run would wait half a second for it at its end.
    """

    def prepare() -> None:
        with suppress(Exception):  # ``write_report`` says what is wrong.
            check_imports(("reports",))
            from reports import run_page

            run_page.compile_templates()

    threading.Thread(target=prepare, daemon=True).start()


def write_report(record: RunRecord, run_dir: Path) -> None:
    """Draws ``report.html`` in the folder of a run that has ended; records its path."""
    # The run has its result, also on a disk that is full.
    with suppress(WorkspaceError):
        try:
            record.report_uri = _draw(run_dir)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            record.note(f"the report could not be written: {text}")
        record.save(run_dir)


def _draw(run_dir: Path) -> str:
    try:
        check_imports(("reports",))
    except ConfigError:
        # Around a script's pipeline, the user may have a package of this name.
        command = [sys.executable, "-m", "reports.run_page", os.path.abspath(run_dir)]
        done = subprocess.run(
            command, cwd=own_root(), check=True, capture_output=True, text=True
        )
        return done.stdout.strip()
    from reports import run_page

    return run_page.write_report(run_dir)
