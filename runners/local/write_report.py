"""Writes the page of a run at its end; a failure becomes a note of the run."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import WorkspaceError
from sluice.project import check_imports

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
            check_imports(("reports",))
            from reports import run_page

            record.report_uri = run_page.write_report(run_dir)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            record.note(f"the report could not be written: {text}")
        record.save(run_dir)
