"""A page that is open follows what it shows, to its end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from runners.local.follow_progress import progress_file
from sluice.record.events import Finished, NodeFinished, NodeStarted
from sluice.record.recorder import Recorder

pytestmark = pytest.mark.unit

RUN = "/pipelines/digits/runs/20260101T000000Z-aaaa/"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.ui.live._EVERY_S", 0.1)


@dataclass
class Running:
    """A run in progress, of which this process holds the lock."""

    recorder: Recorder
    lock: ExitStack


@pytest.fixture
def running(written: Any) -> Iterator[Running]:
    with ExitStack() as lock:
        lock.enter_context(written.workspace.exclusive("test"))
        yield Running(written.begin(written.FIRST), lock)


def contents(events: Iterator[tuple[str, str]]) -> Iterator[str]:
    for name, text in events:
        assert name == "content"
        yield text


def test_a_run_is_followed_to_its_end(
    running: Running, serve_ui: Callable[..., Any]
) -> None:
    recorder, client = running.recorder, serve_ui()
    page = client.get(RUN).text
    assert "data-live" in page and page.count("not reached</span>") == 2
    events = client.events(RUN)
    follow = contents(events)
    first = next(follow)
    assert first.count("not reached</span>") == 2 and "<html" not in first

    recorder.apply(NodeStarted(node="Examples", attempt=1))
    log = recorder.run_dir / "logs" / "Examples.log"
    log.write_text("reading <b> now\n")
    assert any("running" in text and "reading &lt;b&gt; now" in text for text in follow)
    recorder.apply(NodeFinished(node="Examples", state="ran", duration_s=61.0))
    recorder.apply(NodeStarted(node="Trainer", attempt=1))
    assert any("1 min 01 s" in text for text in follow)

    path = progress_file(recorder.run_dir, "Trainer")
    path.parent.mkdir()
    report = {"event": "epoch", "epochs": 9, "examples_per_second": 1234.5}
    for epoch, loss in enumerate((0.5, 0.25), start=1):
        metrics = {"loss": loss, "val_loss": loss + 0.125}
        with path.open("a") as file:
            file.write(json.dumps({**report, "epoch": epoch, "metrics": metrics}))
            file.write("\n")
    assert any("from 0.5000 to 0.2500" in text for text in follow)
    recorder.show_progress("Trainer", {**report, "epoch": 2})
    recorder.tick()
    assert any("epoch 2/9, 1,234 examples/s" in text for text in follow)

    recorder.apply(NodeFinished(node="Trainer", state="failed", duration_s=2.0))
    recorder.apply(Finished())
    recorder.end()
    running.lock.close()
    *_, (before, text), (last, _) = events
    assert (before, last) == ("content", "end")
    # The curves of a failed training are those of its progress.
    assert "from 0.5000 to 0.2500" in text and "/do/cancel" not in text
    assert "data-live" not in client.get(RUN).text
    report = client.get(f"{RUN}report.html").text
    assert 'id="training"' in report and "from 0.5000 to 0.2500" in report


def test_a_killed_run_ends_the_page_and_can_be_resumed(
    running: Running, serve_ui: Callable[..., Any]
) -> None:
    client = serve_ui()
    running.recorder.apply(NodeStarted(node="Examples", attempt=1))
    events = client.events(RUN)
    assert "/do/cancel" in next(events)[1]
    # As the kernel does when the run's processes have ended.
    running.lock.close()
    *_, (_, text), (last, _) = events
    assert last == "end" and "interrupted" in text and "was killed" in text
    assert "/do/resume" in text and "/do/cancel" not in text


def test_a_deleted_run_ends_the_page(
    running: Running, serve_ui: Callable[..., Any]
) -> None:
    events = serve_ui().events(RUN)
    next(events)
    running.recorder.run_dir.rename(running.recorder.run_dir.parents[2] / "moved")
    assert next(events) == ("gone", "there is no such run")


def test_the_list_of_pipelines_follows_new_runs(
    written: Any, serve_ui: Callable[..., Any]
) -> None:
    client = serve_ui()
    events = client.events("/")
    text = next(events)[1]
    assert "Nothing has run yet" in text and "digits" in text
    with written.workspace.exclusive("test"):
        written.workspace.root.joinpath("workspace.json").touch()
        recorder = written.begin(written.FIRST)
        recorder.apply(NodeStarted(node="Trainer", attempt=1))
        found = (text for _, text in events if "Trainer" in text)
        assert written.FIRST in next(found)


def test_a_stream_ends_with_the_server(
    running: Running, serve_ui: Callable[..., Any]
) -> None:
    client = serve_ui()
    events = client.events(RUN)
    next(events)
    client.stop()
    assert list(itertools.islice(events, 9)) == []
