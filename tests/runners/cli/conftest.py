"""Runs on disk whose values the command line compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit import protos, runs


@pytest.fixture
def write_run(root):
    """Writes a run of digits.

    ``metrics`` are those of all examples; ``documents`` have one artifact per kind.
    """

    def write(
        run_id: str,
        metrics: dict[str, Any] | None = None,
        documents: dict[str, Any] | None = None,
        **facts: Any,
    ) -> Path:
        found = dict(documents or {})
        if metrics:
            found["metrics"] = protos.evaluation(protos.slice_metrics(metrics))
        none: dict[str, Any] = {"nodes": [], "gates": [], "pushes": []}
        none |= {"started_at": f"{run_id[:4]}-01-01T00:00:00+00:00", "ended_at": None}
        record = runs.a_record(run_id, **{**none, **facts})
        return runs.write_run(root / "workspace/digits/runs", record, found)

    return write
