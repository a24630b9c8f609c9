"""The report of a node's process holds no secret."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice import secrets

pytestmark = pytest.mark.tf


def test_a_result_that_cannot_be_read_back_is_redacted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from runners.local import node_job
    from runners.local.graph_file import PlannedNode

    def refuse(*_: object, **__: object) -> Any:
        raise ValueError(f"cannot open {secrets.resolve('${env:TOKEN}')}")

    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("TOKEN", "MARKER")
    for name in ("connection_of", "write_documents"):
        monkeypatch.setattr(node_job, name, refuse)
    results: list[dict[str, Any]] = []
    monkeypatch.setattr(
        node_job, "write_result", lambda run_dir, node, facts: results.append(facts)
    )
    planned = PlannedNode("Train", "Trainer", (), (), gate=False, resolver=False)
    node_job.report_node(
        tmp_path,
        planned,
        None,
        SimpleNamespace(key=None, parts=None),  # type: ignore[arg-type]
        node_job.Ended(0.1),
    )
    (result,) = results
    assert "${env:TOKEN}" in result["error"]["message"]
    assert "${env:TOKEN}" in result["notes"][0]
    assert "${env:TOKEN}" in result["reason"]
    assert "MARKER" not in f"{result}{capfd.readouterr()}"
