"""What the pages show of runs that are on disk."""

import json
import shutil
from contextlib import ExitStack
from html import escape
from urllib.parse import quote

import pytest

from reports import formats
from serving.local_store import LocalModelStore
from serving.store_owner import Owner
from sluice.record.outcome import summarize
from sluice.record.parts import ErrorRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace
from tests.kit import protos
from tests.kit.read_page import Page
from tests.kit.runs import AT, FIRST, SECOND, a_check, a_gate, a_record, write_run

pytestmark = pytest.mark.unit

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{ 7*7 }}\u202e"
RUN = "/pipelines/digits/runs/20260101T000000Z-aaaa/"


def test_pipelines_and_runs(written, call_ui):
    client = call_ui()
    assert "Nothing has run yet" in client.get("/").text
    written.fail(FIRST)
    written.fail(SECOND)
    (written.root / "configs" / "other.yaml").write_text("")
    text = client.get("/").text
    assert f"/pipelines/digits/runs/{SECOND}" in text
    assert FIRST not in text and "other</span>" in text
    assert "Examples failed: boom" in text
    text = client.get("/pipelines/digits").text
    assert text.index(SECOND) < text.index(FIRST)
    query = f"before={FIRST}&after={SECOND}"
    address = f"/pipelines/digits/diff.html?{query}"
    text = client.get(f"/pipelines/digits/diff?{query}").text
    assert f'<iframe class="report" src="{escape(address)}"' in text
    assert f"run {SECOND} compared with {FIRST}" in client.get(address).text


def test_the_first_page_says_what_is_served_and_why_the_last_run_is_not(
    written, call_ui
):
    serving, model = written.workspace.serving, written.root / "model"
    model.mkdir()
    (model / "saved_model.pb").write_text("a model")
    store, facts = LocalModelStore(serving), {"pipeline_run_id": FIRST}
    passed = a_gate("model", a_check(actual=0.9767), a_check("auc", actual=0.99))
    pushed = PushRecord(str(serving), "pushed", 1, f"{serving}/1")
    record = written.write(FIRST, gates=[passed], pushes=[pushed])
    slices = [
        protos.slice_metrics({"accuracy": value, "example_count": 1e4, **more}, name)
        for name, value, more in (
            ("baseline", 0.99, {}),
            ("candidate", 0.9767, protos.estimates(10_000, accuracy=0.9767)),
        )
    ]
    write_run(written.workspace.runs, record, {"metrics": protos.evaluation(*slices)})
    store.publish(model, facts=facts)
    client = call_ui()
    text = Page(client.get("/").text).text
    report = Page(client.get(f"{RUN}page.html").text).text
    says = "Version 1 was pushed: model gate passed, and worse in: accuracy (0.99"
    assert says in text and says in report
    missed = a_check(actual=0.12, result="FAIL", why="misses the limit by 0.85")
    written.write(
        SECOND,
        status="blocked",
        exit_code=4,
        gates=[a_gate("model", missed)],
        pushes=[PushRecord(str(serving), "blocked")],
    )
    text = Page(client.get("/").text).text
    (version,) = store.versions()
    since = formats.time(version.published_at)
    assert f"Served version 1 since {since}" in text
    assert "Its accuracy 0.9767 limit ≥ 0.97" in text and "0.99" not in text
    assert "blocked (model gate)" in text
    # The sentences of the report.
    _, headline, (cause,) = summarize(RunRecord.load(written.run_dir(SECOND)))
    report = Page(client.get(f"/pipelines/digits/runs/{SECOND}/page.html").text).text
    for sentence in (headline, cause):
        assert sentence in text and sentence in report
    store.retire(1, "bad labels", Owner("digits"))
    text = Page(client.get("/").text).text
    assert "Served version 1 retired: bad labels" in text
    # What is in the directory is served, whatever a record says.
    shutil.rmtree(serving / "1")
    assert "Served nothing yet" in Page(client.get("/").text).text


def test_a_run_and_its_logs(written, call_ui):
    run_dir = written.fail(FIRST)
    (run_dir / "logs" / "start.log").write_text("importing\n")
    trainings = written.workspace.artifacts / "Trainer"
    trainings.mkdir(parents=True)
    client = call_ui()
    text = client.get(RUN).text
    assert "Examples failed: boom" in text and "3.1 GB" in text
    assert f"tensorboard --logdir {trainings}" in text
    # The log is that of the failed node, unless another is asked for.
    assert "one\ntwo</pre>" in text and "importing" not in text
    assert "importing</pre>" in client.get(f"{RUN}?log=start").text
    assert "one\ntwo</pre>" in client.get(f"{RUN}?log=..%2Frun").text
    assert "<mark>" not in text
    answer = client.get(f"{RUN}logs/Examples")
    assert answer.text == "one\ntwo\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "<!doctype html>" in client.get(f"{RUN}report.html").text


def test_hostile_names_and_texts_are_escaped(tmp_path, monkeypatch, call_ui):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    name = HOSTILE.replace("/", "")
    node = NodeRecord(name, name, "failed", 1.0, HOSTILE)
    error = ErrorRecord(name, HOSTILE, None, [HOSTILE])
    facts = {"pipeline": name, "nodes": [node], "error": error}
    record = a_record(f"{FIRST}{name}", status="failed", **facts)
    workspace = Workspace(tmp_path / "workspace" / name)
    write_run(workspace.runs, record, logs={name: HOSTILE})
    client = call_ui()
    pipeline = f"/pipelines/{quote(name, safe='')}"
    run = f"{pipeline}/runs/{quote(record.run_id, safe='')}/"
    for path in ("/", pipeline, run):
        text = client.get(path).text
        assert "&lt;img" in text, path
        assert "<img" not in text and "\u202e" not in text and ">49<" not in text
    assert client.get(f"{run}logs/{quote(name)}").text == HOSTILE
    assert pipeline in client.get("/").text and run in client.get(pipeline).text


def test_the_pages_write_nothing(written, call_ui):
    written.fail()
    written.begin(SECOND, running="Examples")  # killed: nobody has the lock
    before = {path: path.stat().st_mtime_ns for path in written.root.rglob("*")}
    client = call_ui()
    pipeline, killed = "/pipelines/digits", f"runs/{SECOND}/"
    paths = ("", f"/{killed}", f"/{killed}report.html")
    for path in ("/", *(f"{pipeline}{path}" for path in paths)):
        assert client.get(path).status_code == 200
    after = {path: path.stat().st_mtime_ns for path in written.root.rglob("*")}
    assert after == before


# Pages that are open


def test_a_run_in_progress_to_its_end(written, call_ui):
    client, run_dir = call_ui(), written.run_dir()

    def set_node(node, state, **facts):
        vars(record.node(node)).update(state=state, **facts)
        written.save(record)
        return client.get(RUN).text

    with ExitStack() as lock:
        lock.enter_context(written.workspace.exclusive("test"))
        record = written.begin()
        text = client.get(RUN).text
        assert text.count("not reached</span>") == 2 and "data-live" in text
        assert f"<title>run {FIRST} · digits · Sluice</title>" in text
        (run_dir / "logs" / "Examples.log").write_text("reading <b> now\n")
        text = set_node("Examples", "running", started_at=AT)
        assert "running" in text and "reading &lt;b&gt; now" in text
        report = {"event": "epoch", "epochs": 9, "examples_per_second": 1234.5}
        progress = run_dir / "progress" / "Trainer.jsonl"
        progress.parent.mkdir()
        for epoch, loss in enumerate((0.5, 0.25), start=1):
            metrics = {"loss": loss, "val_loss": loss + 0.125}
            line = {**report, "epoch": epoch, "metrics": metrics}
            with progress.open("a") as file:
                file.write(f"{json.dumps(line)}\n")
        set_node("Examples", "ran", duration_s=61.0)
        facts = {"started_at": AT, "progress": {**report, "epoch": 2}}
        text = set_node("Trainer", "running", **facts)
        assert "1 min 01 s" in text and "from 0.5000 to 0.2500" in text
        assert "epoch 2/9, 1,234 examples/s" in text
        assert "sluice cancel digits" in text
        record.status, record.resume_command = "failed", "sluice resume digits"
        text = set_node("Trainer", "failed", duration_s=2.0, progress=None)
        # The curves of a failed training are those of its progress.
        assert "from 0.5000 to 0.2500" in text
        assert "sluice cancel" not in text
        # The run has ended, but not yet its process.
        assert "data-live" in text
    text = client.get(RUN).text
    assert "sluice resume digits" in text and "data-live" not in text


def test_a_killed_run_is_not_live_and_can_be_resumed(written, call_ui):
    written.begin(running="Examples")
    text = call_ui().get(RUN).text
    assert "interrupted" in text and "data-live" not in text
    assert "sluice resume digits" in text and "sluice cancel" not in text
