"""The page of a run whose record is on ``gs://``, as an exit handler draws it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from reports import run_page
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


def test_the_entry_point_writes_the_page_of_a_run(bucket, address, monkeypatch, capsys):
    bucket.requests()
    monkeypatch.setattr(sys, "argv", ["run_page", f"{address}/"])
    run_page.main()
    assert capsys.readouterr().out == f"{address}/report.html\n"
    page = bucket.get(f"{RUN}/report.html").decode()
    assert "Version 3 was pushed" in page
    assert "<dd>1,797<small>" in page and "the end" in page
    assert not [line for line in bucket.requests() if "checkpoints" in line]
    monkeypatch.setattr(sys, "argv", ["run_page", bucket.uri("runs/other")])
    with pytest.raises(SystemExit, match="runs/other"):
        run_page.main()
