"""A run's folder as the reports read it, without a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.read_run import RunData
from tests.kit.runs import a_record
from tests.kit.runs import write_run as write_to


@pytest.fixture
def run_with(tmp_path: Path) -> Callable[..., RunData]:
    """Makes a run from changes to the record, and ``kind=artifact`` of documents."""

    def make(documents: dict[str, Any] | None = None, **changes: Any) -> RunData:
        record = a_record(**changes)
        return RunData(write_to(tmp_path / "runs", record, documents), record)

    return make


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Path]:
    """Writes a run that has every document; see ``generated_run``."""
    from tests.reports import generated_run

    return generated_run.write_run
