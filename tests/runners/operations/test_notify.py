"""Notifications and the heartbeat of runs, received by a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from pipeline.config.load import load_config
from pipeline.config.notify import Notify
from runners.cache import up_to_date
from runners.operations import notify as module
from runners.operations.notify import notify
from runners.operations.run import run
from sluice.record.parts import ErrorRecord
from sluice.record.run_record import RunOptions, RunRecord
from sluice.workspace import Workspace
from tests.kit.runs import FIRST, SECOND, a_record
from tests.runners.memory_engine import MemoryEngine

pytestmark = pytest.mark.unit

SECRET = "topsecretpassword"


class Service:
    """An HTTP server that keeps what it gets.

    Attributes:
      posted: titles and bodies of messages.
      pinged: paths that were got.
      passwords: headers ``Authorization`` of the messages.
      status: what it answers.
      hangs: whether it answers only once the test has ended.
      drips: whether its answer has no end, and a line every 0.3 s.
    """

    def __init__(self) -> None:
        self.posted: list[dict[str, str]] = []
        self.pinged: list[str] = []
        self.passwords: list[str | None] = []
        self.status, self.hangs, self._over = 200, False, Event()
        self.drips = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                service.pinged.append(self.path)
                self.answer()

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                service.posted.append(json.loads(self.rfile.read(size)))
                service.passwords.append(self.headers["Authorization"])
                self.answer()

            def answer(self):
                if service.hangs:
                    service._over.wait()
                # As some servers do, it repeats what it was asked for.
                self.send_response(service.status, f"no {self.path}")
                self.flush_headers()
                while service.drips and not service._over.wait(0.3):
                    self.wfile.write(b"X-Drip: 1\r\n")
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.place = f"127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def titles(self) -> list[str]:
        return [
            message["title"].removeprefix("sluice digits: ") for message in self.posted
        ]

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service(written) -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def run_with(service: Service, engine=None, *overrides: str, **options) -> RunRecord:
    """Runs digits with messages to a service."""
    urls = f"notify.urls=[json://{service.place}/]"
    config = load_config("digits", overrides=[urls, *overrides])
    engine = engine or MemoryEngine(pushes="/serving/1")
    return run(
        config, RunOptions(**options), command="sluice run digits", engine=engine
    )


def test_a_message_says_why_and_what_to_do(service):
    record = run_with(service, MemoryEngine(fails="Train"))
    (message,) = service.posted
    assert message["type"] == "failure"
    assert message["message"].splitlines() == [
        "Failed in Train: nothing was pushed",
        "- Train is broken",
        "",
        "Next: Resume the run: nodes that have finished are not run again",
        f"  sluice resume digits --run {record.run_id}",
        f"Run: {record.run_id}",
        f"Report: {record.report_uri}",
    ]
    assert record.notes == []


def test_a_cause_is_sent_once(service, written):
    config = Notify(urls=(f"json://{service.place}/",))

    def end(**changes):
        notify(config, written.workspace, a_record(**changes))

    def fail(message):
        for run_id in (FIRST, SECOND):
            error = ErrorRecord("Train", f"{message} in {run_id}")
            end(run_id=run_id, status="failed", error=error, pushes=[])

    fail("broken")
    assert service.titles == ["failed"]
    fail("out of memory")
    fail("broken")
    assert service.titles == 3 * ["failed"]
    end()
    end(status="up_to_date")
    assert service.titles[3:] == ["recovered (pushed)"]
    fail("broken")
    assert service.titles[4:] == ["failed"]
    end(status="skipped", pushes=[])
    fail("broken")
    assert service.titles[5:] == ["failed"]
    end()
    assert service.titles[6:] == ["recovered (pushed)"]


def test_what_is_refused_is_a_note_and_sent_by_the_next_run(service, written):
    service.status = 500
    ping = f"notify.heartbeat=http://{service.place}/ping"
    record = run_with(service, MemoryEngine(fails="Train"), ping)
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.notes == [
        "notify.urls[0]: not sent: see why with: apprise -vv --body test URL",
        "notify.heartbeat: not sent: HTTP status 500",
    ]
    run_dir = written.workspace.run_dir(record.run_id)
    assert RunRecord.load(run_dir).notes == record.notes
    service.status = 200
    assert run_with(service, MemoryEngine(fails="Train"), ping).notes == []
    assert service.titles == ["failed", "failed"]


@pytest.mark.parametrize("way", ["hangs", "drips"])
def test_a_server_that_does_not_answer_is_a_note_in_time(service, monkeypatch, way):
    monkeypatch.setattr(module, "TIMEOUT_S", 1)
    setattr(service, way, True)
    ping = f"notify.heartbeat=http://{service.place}/ping"
    begun = time.monotonic()
    record = run_with(service, MemoryEngine(fails="Train"), ping)
    assert time.monotonic() - begun < 5
    assert (len(service.posted), service.pinged) == (1, ["/ping"])
    assert record.exit_code == 7
    assert record.notes == [
        "notify.urls[0]: not sent: no answer within 1 s",
        "notify.heartbeat: not sent: no answer within 1 s",
    ]


def test_a_secret_is_sent_and_stored_nowhere(service, written, monkeypatch, caplog):
    monkeypatch.setenv("HOOK", f"json://me:{SECRET}@{service.place}/")
    monkeypatch.setenv("BROKEN", f"nothing://me:{SECRET}@{service.place}/")
    monkeypatch.setenv("PING", f"http://{service.place}/ping?token={SECRET}")
    urls = "notify.urls=['${env:HOOK}', '${env:BROKEN}']"
    ping = "notify.heartbeat=${env:PING}"
    record = run_with(service, MemoryEngine(fails="Train"), urls, ping)
    assert [password is not None for password in service.passwords] == [True]
    assert service.pinged == [f"/ping?token={SECRET}"]
    assert [note.split(":")[0] for note in record.notes] == ["notify.urls[1]"]
    monkeypatch.setenv("PING", f"secret:{SECRET}")
    record = run_with(service, MemoryEngine(fails="Train"), urls, ping)
    assert "notify.heartbeat: not sent: the variable's value" in record.notes[-1]
    root = written.workspace.root
    files = [path for path in root.rglob("*") if path.is_file()]
    stored = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
    assert (
        f"runs/{record.run_id}/run.json" in stored and "state/notified.json" in stored
    )
    assert [name for name, text in stored.items() if SECRET.encode() in text] == []
    assert b"${env:HOOK}" in stored[f"runs/{record.run_id}/run.json"]
    assert SECRET not in caplog.text


def test_an_unchanged_run_recovers_and_calls_the_heartbeat(service, monkeypatch):
    ping = f"notify.heartbeat=http://{service.place}/ping"
    done = run_with(service)
    run_with(service, MemoryEngine(fails="Train"))
    workspace = Workspace(Path.cwd() / "workspace" / "digits")
    workspace.complete_file.touch()
    monkeypatch.setattr(up_to_date, "still_stands", lambda *_: done)
    assert run_with(service, None, ping).status == "up_to_date"
    assert service.titles == ["failed", "recovered (up to date)"]
    assert service.pinged == ["/ping"]
