"""What the pages show, of runs that are on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sluice.record.events import (
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
    RunStarted,
    SpansChosen,
)
from sluice.record.recorder import Recorder
from sluice.record.run_record import DocumentRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{ 7*7 }}\u202e"


def test_pipelines_and_runs(written: Any, serve_ui: Callable[..., Any]) -> None:
    client = serve_ui()
    assert client.get("/pipelines/digits").status == 200
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    (written.root / "configs" / "other.yaml").write_text("")
    text = client.get("/").text
    assert f"/pipelines/digits/runs/{written.SECOND}" in text
    assert written.FIRST not in text and "other" in text
    text = client.get("/pipelines/digits").text
    assert text.index(written.SECOND) < text.index(written.FIRST)
    assert text.count("Examples failed: boom") == 2
    query = f"before={written.FIRST}&after={written.SECOND}"
    text = client.get(f"/pipelines/digits/diff?{query}").text
    assert f"run {written.SECOND} compared with {written.FIRST}" in text
    assert client.get("/pipelines/digits/diff?before=/etc&after=x").status == 404
    assert client.get("/pipelines/digits/diff").status == 404


def test_a_run_and_its_logs(written: Any, serve_ui: Callable[..., Any]) -> None:
    run_dir = written.fail(written.FIRST)
    (run_dir / "logs" / "start.log").write_text("importing\n")
    client = serve_ui()
    url = f"/pipelines/digits/runs/{written.FIRST}/"
    text = client.get(url).text
    assert "Examples failed: boom" in text and "3.1 GB" in text
    # Of the node that failed, unless another is asked for.
    assert "one\ntwo</pre>" in text and "importing" not in text
    assert "importing</pre>" in client.get(f"{url}?log=start").text
    assert "one\ntwo</pre>" in client.get(f"{url}?log=..%2Frun").text
    answer = client.get(f"{url}logs/Examples")
    assert answer.text == "one\ntwo\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "<!doctype html>" in client.get(f"{url}report.html").text


def test_a_damaged_document_is_a_notice(
    written: Any, serve_ui: Callable[..., Any]
) -> None:
    recorder = written.begin(written.FIRST)
    path = recorder.run_dir / "record" / "Trainer.epochs.json"
    path.parent.mkdir()
    artifact = {"epochs": [1], "metrics": {"loss": 3}, "training": None}
    path.write_text(json.dumps({"node": "Trainer", "artifacts": [artifact]}))
    document = DocumentRecord("epochs", "Trainer", "record/Trainer.epochs.json", "")
    recorder.apply(NodeFinished(node="Trainer", state="ran", documents=(document,)))
    recorder.end()
    answer = serve_ui().get(f"/pipelines/digits/runs/{written.FIRST}/")
    assert answer.status == 200
    assert "a part cannot be drawn: TypeError" in answer.text


def test_models(past: Any, serve_ui: Callable[..., Any]) -> None:
    run_id = past.run(push=True)
    past.run(push=True)
    version = past.workspace.serving / "2"
    next(path for path in version.rglob("*") if path.is_file()).write_text("damaged")
    text = serve_ui().get("/pipelines/digits/models").text
    assert f"/pipelines/digits/runs/{run_id}" in text
    assert "version 2 is damaged" in text and "damaged" in text
    (past.root / "configs" / "digits.yaml").write_text("damaged")
    text = serve_ui().get("/pipelines/digits/models").text
    assert "No version has been pushed" not in text and "damaged" in text


def test_spans(written: Any, serve_ui: Callable[..., Any]) -> None:
    for run_id, numbers in ((written.FIRST, (1, 2)), (written.SECOND, (2, 3))):
        recorder = written.begin(run_id)
        spans = [{"span": n, "version": None, "date": f"2026-01-0{n}"} for n in numbers]
        recorder.apply(SpansChosen(spans={"data": spans}))
        recorder.apply(Finished())
        recorder.end()
    text = serve_ui().get("/pipelines/digits/data").text
    rows = text.split("<tr>")[2:]
    assert [row.count(written.FIRST) > 0 for row in rows] == [False, True, True]
    assert "2026-01-03" in rows[0] and "2026-01-01" in rows[2]
    assert "it would read all files" in text


def test_hostile_names_and_texts_are_escaped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_started: RunStarted,
    serve_ui: Callable[..., Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    name = HOSTILE.replace("/", "")
    workspace = Workspace(tmp_path / "workspaces" / name)
    workspace.prepare()
    run_id = f"{run_started.run_id}{name}"
    run_dir = workspace.run_dir(run_id)
    (run_dir / "logs").mkdir(parents=True)
    (run_dir / "config.json").write_text(json.dumps({"profile": None, "overrides": []}))
    (run_dir / "logs" / f"{name}.log").write_text(HOSTILE)
    recorder = Recorder(run_dir)
    recorder.apply(replace(run_started, run_id=run_id, pipeline=name))
    recorder.apply(GraphCompiled(nodes=(GraphNode(name, name, ()),)))
    recorder.apply(NodeStarted(node=name, attempt=1))
    recorder.apply(
        NodeFinished(
            node=name,
            state="failed",
            reason=HOSTILE,
            error=NodeFailure(HOSTILE, 7, log_tail=(HOSTILE,)),
        )
    )
    recorder.apply(Finished())
    recorder.end()
    client = serve_ui(workspace_dir=str(tmp_path / "workspaces"))
    pipeline = f"/pipelines/{quote(name, safe='')}"
    run = f"{pipeline}/runs/{quote(run_id, safe='')}/"
    pages = ["/", pipeline, run, f"{run}do/resume", f"{pipeline}/models"]
    pages += [f"{pipeline}/data", f"{pipeline}/diff?before={quote(run_id)}&after=x"]
    for path in pages:
        text = client.get(path).text
        assert "&lt;img" in text or "there is no" in text, path
        assert "<img" not in text and "\u202e" not in text and ">49<" not in text
    assert client.get(f"{run}logs/{quote(name)}").text == HOSTILE
    assert pipeline in client.get("/").text and run in client.get(pipeline).text
