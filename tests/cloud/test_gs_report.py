"""The page of a run whose record is on ``gs://``, as an exit handler draws it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from reports import run_page
from reports.read_run import read_run
from reports.run_page import write_report
from sluice.errors import WorkspaceError
from sluice.record.parts import DocumentRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.cloud

RUN = "runs/20260101T000000Z-aaaa"


@pytest.fixture
def address(bucket: Any) -> str:
    """The address of a run with a document, a log, and a checkpoint beside them."""
    path = "documents/1.ingestion.json"
    record = RunRecord(
        run_id="20260101T000000Z-aaaa",
        pipeline="digits",
        started_at="2026-01-01T00:00:00+00:00",
        command="sluice run digits",
        status="succeeded",
        nodes=[NodeRecord("Gen", "Gen", "ran", 2.0)],
        pushes=[PushRecord("gs://models/digits", "pushed", 3, "gs://models/digits/3")],
        documents=[DocumentRecord("ingestion", "Gen", path)],
    )
    document = {"kind": "ingestion", "records": 1797}
    bucket.put(f"{RUN}/run.json", json.dumps(record.to_dict()).encode())
    bucket.put(f"{RUN}/{path}", json.dumps(document).encode())
    bucket.put(f"{RUN}/logs/Gen.log", b"the end\n")
    bucket.put(f"{RUN}/checkpoints/weights", b"not needed")
    return bucket.uri(RUN)


def test_the_page_is_written_beside_the_record(bucket, address):
    bucket.requests()
    assert write_report(address) == f"{address}/report.html"
    page = bucket.get(f"{RUN}/report.html").decode()
    assert "Version 3 was pushed" in page
    assert "<dd>1,797<small>" in page and "the end" in page
    requests = bucket.requests()
    assert any("run.json" in request for request in requests), requests
    assert not any("checkpoints" in request for request in requests)


def test_the_entry_point(bucket, address, monkeypatch, capsys):
    target = bucket.uri("pages/report.html")
    monkeypatch.setattr(sys, "argv", ["run_page", f"{address}/", "-o", target])
    run_page.main()
    assert capsys.readouterr().out == f"{target}\n"
    assert bucket.names("pages/") == ["pages/report.html"]


def test_a_run_that_is_not_there(bucket, address):
    with (
        pytest.raises(FileNotFoundError, match="runs/other"),
        read_run(bucket.uri("runs/other")),
    ):
        pass
    bucket.put(f"{RUN}/run.json", b"{")
    with (
        pytest.raises(WorkspaceError, match="cannot be read") as raised,
        read_run(address),
    ):
        pass
    assert raised.value.where == f"{address}/run.json"
