"""The local server in a real browser, with real runs."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from reports import formats
from sluice import progress
from sluice.project import own_root
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

LONG_MS = 240_000
RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{4}$")


@dataclass
class Opened:
    """A page of the server, and what went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)


@pytest.fixture
def open_ui(browser: Browser) -> Iterator[Callable[[Any], Opened]]:
    """Opens the printed address; at the end, nothing may have gone wrong."""
    context = browser.new_context()
    opened: list[Opened] = []

    def open_ui(client: Any) -> Opened:
        context.set_default_timeout(LONG_MS)
        expect.set_options(timeout=LONG_MS)
        found = Opened(context.new_page())

        def note_error(said: ConsoleMessage) -> None:
            if said.type == "error":
                found.problems.append(said.text)

        def note_foreign(sent: Request) -> None:
            if not sent.url.startswith(client.origin):
                found.problems.append(sent.url)

        found.page.on("console", note_error)
        found.page.on("request", note_foreign)
        found.page.on("pageerror", lambda error: found.problems.append(str(error)))
        found.page.goto(f"{client.origin}/login?token={client.session.token}")
        found.page.wait_for_url(f"{client.origin}/")
        opened.append(found)
        return found

    yield open_ui
    context.close()
    assert [item.problems for item in opened] == [[] for _ in opened]


@dataclass
class Started:
    """A run of digits that was started from the command line."""

    command: Any
    workspace: Workspace

    def document(self) -> dict[str, Any]:
        """Waits for its end and returns its record."""
        done = self.command.completed()
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def digits(
    project: Path,
    fork_command: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Started]:
    workspaces = tmp_path_factory.mktemp("ui") / "workspaces"
    arguments = ("run", "digits", "--json", "--workspace", str(workspaces))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        patch.setenv("PYTHONPATH", str(own_root()))
        command = fork_command(*arguments, cwd=project)
        yield Started(command, Workspace(workspaces / "digits"))
        command.kill()


def test_the_live_view_follows_a_run_to_its_end(
    digits: Started, serve_ui: Callable[..., Any], open_ui: Callable[[Any], Opened]
) -> None:
    client = serve_ui(workspace_dir=str(digits.workspace.root.parent))
    page = open_ui(client).page
    # The list of pipelines shows the run as soon as it begins.
    page.get_by_role("link", name=RUN_ID).click()
    page.evaluate("window.isSameDocument = true")
    expect(page.locator("#connection")).to_have_text("live")

    row = page.get_by_role("row", name=re.compile("^Trainer"))
    expect(row).to_contain_text("running")
    expect(row).to_contain_text(re.compile(r"epoch \d+/30"))
    points = page.locator(".chart-grid figure").first.locator("circle")
    seen = points.count()
    expect(points.nth(seen + 1)).to_be_attached()
    expect(page.locator("pre[id]")).to_contain_text("tensorflow")

    expect(page.locator(".state")).to_contain_text("succeeded")
    expect(page.get_by_text("Version 1 was pushed")).to_be_visible()
    document = digits.document()
    assert page.evaluate("window.isSameDocument")
    expect(page.locator("#connection")).to_have_text("")
    expect(page.get_by_role("link", name="Stop")).to_have_count(0)
    shown = page.locator("table").last.locator("tbody tr")
    assert [row.locator("th").inner_text() for row in shown.all()] == [
        node["id"] for node in document["nodes"]
    ]
    assert {row.locator(".mark").inner_text() for row in shown.all()} == {"ran"}

    page.get_by_role("link", name="Report").click()
    expect(page).to_have_title(re.compile(f"{document['run_id']}$"))
    assert page.url.endswith(f"/runs/{document['run_id']}/report.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_phone(
    digits: Started,
    serve_ui: Callable[..., Any],
    open_ui: Callable[[Any], Opened],
    scheme: Literal["light", "dark"],
) -> None:
    run_id = digits.document()["run_id"]
    client = serve_ui(workspace_dir=str(digits.workspace.root.parent))
    page = open_ui(client).page
    page.emulate_media(color_scheme=scheme)
    pipeline, axe = "/pipelines/digits", Axe()
    run = f"{pipeline}/runs/{run_id}/"
    paths = ["/", pipeline, f"{pipeline}/models", f"{pipeline}/data", run]
    for path in [*paths, f"{run}do/tensorboard"]:
        page.goto(client.origin + path)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            found = axe.run(page).response["violations"]
            bad = [item for item in found if item["impact"] in ("serious", "critical")]
            assert bad == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_tensorboard_ends_with_the_server(
    digits: Started,
    serve_ui: Callable[..., Any],
    open_ui: Callable[[Any], Opened],
    is_gone: Callable[[int], bool],
) -> None:
    run_id = digits.document()["run_id"]
    client = serve_ui(workspace_dir=str(digits.workspace.root.parent))
    page = open_ui(client).page
    page.goto(f"{client.origin}/pipelines/digits/runs/{run_id}/")
    page.get_by_role("link", name="TensorBoard").click()
    expect(page.get_by_text("It has no password")).to_be_visible()
    assert client.children.all() == []
    page.get_by_role("button", name="TensorBoard").click()
    opener = page.get_by_role("link", name="Open TensorBoard")
    address = opener.get_attribute("href")
    assert address and address.startswith("http://127.0.0.1:")
    logs = f"{address}data/runs"
    with urllib.request.urlopen(logs, timeout=60) as answer:
        assert set(json.load(answer)) == {"tensorboard/train", "tensorboard/validation"}
    (child,) = client.children.all()
    client.stop()
    assert child.exit_code is not None and is_gone(child.process.pid)
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=5)


def test_a_run_is_stopped_and_resumed(
    digits: Started,
    project: Path,
    fork_command: Callable[..., Any],
    wait_for: Callable[..., Any],
    serve_ui: Callable[..., Any],
    open_ui: Callable[[Any], Opened],
) -> None:
    first = digits.document()["run_id"]
    workspace = digits.workspace
    training = ("run", "digits", "--to", "Trainer", "--set", "train.seed=18")
    place = f"--workspace={workspace.root.parent}"
    command = fork_command(*training, place, cwd=project)
    run_id = wait_for(
        lambda: next((name for name in workspace.run_ids() if name > first), None),
        "the second run",
    )
    client = serve_ui(workspace_dir=str(workspace.root.parent))
    page = open_ui(client).page
    page.goto(f"{client.origin}/pipelines/digits/runs/{run_id}/")
    trainer = page.get_by_role("row", name=re.compile("^Trainer"))
    expect(trainer).to_contain_text(re.compile(r"epoch [2-9]/30"))
    expect(page.get_by_role("link", name="Resume")).to_have_count(0)
    for button, state in (("Stop", "interrupted"), ("Resume", "succeeded")):
        page.get_by_role("link", name=button).click()
        expect(page.locator(".command")).to_contain_text(place)
        page.get_by_role("button", name=button).click()
        expect(page.get_by_text("ended with exit code 0")).to_be_visible()
        page.get_by_role("link", name="The run").click()
        expect(page.locator(".state")).to_contain_text(state)
    assert command.wait() == 130

    (run_dir,) = workspace.runs.glob(f"{run_id}/")
    record = json.loads((run_dir / "run.json").read_text())
    assert (record["status"], len(record["resumed_at"])) == ("succeeded", 1)
    node = next(node for node in record["nodes"] if node["id"] == "Trainer")
    assert (node["state"], node["attempts"]) == ("ran", 2)
    lines, _ = progress.read(run_dir / "progress" / "Trainer.jsonl")
    restored = [line["epoch"] for line in lines if line["event"] == "restored"]
    assert len(restored) == 1 and restored[0] >= 2
    expect(page.get_by_role("link", name=re.compile("Stop|Resume"))).to_have_count(0)

    # The list, the live view and the report give one duration, without the pause.
    started, ended = (
        datetime.fromisoformat(record[key]) for key in ("started_at", "ended_at")
    )
    length = (ended - started).total_seconds() - record["paused_s"]
    assert 0 < record["paused_s"] < (ended - started).total_seconds()
    text = formats.seconds(length)
    expect(page.locator(".state")).to_contain_text(f"{text} without pauses")
    tile = (run_dir / "report.html").read_text().partition("without pauses")[0]
    assert text in tile[-300:]
    page.goto(f"{client.origin}/pipelines/digits")
    expect(page.get_by_role("row", name=re.compile(run_id))).to_contain_text(text)


def test_a_new_value_is_accepted_into_the_schema(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fork_command: Callable[..., Any],
    serve_ui: Callable[..., Any],
    open_ui: Callable[[Any], Opened],
) -> None:
    shutil.copytree(project / "configs", tmp_path / "configs")
    shutil.copytree(project / "schemas", tmp_path / "schemas")
    (tmp_path / "data").symlink_to(project / "data")
    schema = tmp_path / "schemas" / "taxi" / "schema.pbtxt"
    known = schema.read_text()
    line = re.search(r'\s*value: "Prcard"', known)
    assert line is not None
    schema.write_text(known.replace(line[0], ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(own_root()))
    to_gate = ("run", "taxi", "--to", "DataGate")
    done = fork_command(*to_gate, cwd=tmp_path, SLUICE_WORKSPACE="").completed()
    assert done.returncode == 3, done.stderr

    page = open_ui(serve_ui()).page
    page.get_by_role("link", name=RUN_ID).click()
    page.get_by_role("link", name="Accept into the schema").click()
    page.get_by_label(re.compile("payment_type.*Prcard")).check()
    page.get_by_role("button", name="Accept into the schema").click()
    expect(page.locator("#output")).to_contain_text("accepted payment_type.new_value")
    expect(page.get_by_text("ended with exit code 0")).to_be_visible()
    assert 'value: "Prcard"' in schema.read_text()
