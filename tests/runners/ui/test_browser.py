"""The local server in a real browser, with a real run."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from reports import formats
from sluice import progress
from sluice.project import own_root
from sluice.record.outcome import duration_s
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

LONG_MS, SHORT_MS = 240_000, 20_000
RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{4}$")


@pytest.fixture(scope="module")
def ui(project, start_ui, tmp_path_factory):
    """Yields the workspace of digits, and the printed address."""
    workspaces = tmp_path_factory.mktemp("ui") / "workspaces"
    with start_ui(project, SLUICE_WORKSPACE=str(workspaces)) as (_, printed):
        yield Workspace(workspaces / "digits"), printed["url"]


@pytest.fixture
def page(ui, open_page):
    return open_page(ui[1], LONG_MS)


@pytest.fixture
def open_page(browser):
    """Opens a printed address; at the end, nothing may have gone wrong in the page."""
    with ExitStack() as opened:
        yield lambda *args: opened.enter_context(_page(browser, *args))


@contextmanager
def _page(browser, url, patience_ms):
    context = browser.new_context()
    context.set_default_timeout(patience_ms)
    expect.set_options(timeout=patience_ms)
    page, problems = context.new_page(), []
    origin = url.partition("/?")[0]

    def note_error(said):
        if said.type == "error":
            problems.append(said.text)

    def note_foreign(sent):
        if not sent.url.startswith(origin):
            problems.append(sent.url)

    page.on("console", note_error)
    page.on("request", note_foreign)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    yield page
    context.close()
    assert problems == []


@pytest.mark.acceptance
def test_a_run_is_followed_stopped_and_resumed(ui, page, project):
    workspace = ui[0]
    place = f"--workspace={workspace.root.parent}"
    # So many epochs that the training has not ended when it is stopped. The weights are
    # those of the last one. At a constant learning rate their accuracy varies around
    # the gate's limit by chance: a resumed training draws other dropout.
    options = {
        "train.epochs": 60,
        "train.early_stopping": "null",
        "train.learning_rate": "{kind: cosine, initial: 0.001}",
    }
    sets = [f"--set={x}={y}" for x, y in options.items()]
    variables = {**os.environ, "PYTHONPATH": str(own_root())}
    program, quiet = Path(sys.executable).with_name("sluice"), subprocess.DEVNULL

    def start(*words):
        words = (program, *words, place)
        return subprocess.Popen(words, cwd=project, env=variables, stdout=quiet)

    command = start("run", "digits", *sets)
    # The list of pipelines shows the run as soon as it begins.
    page.get_by_role("link", name=RUN_ID).click()
    page.evaluate("window.isSameDocument = true")
    expect(page.locator("#connection")).to_have_text("live")
    trainer = page.get_by_role("row", name=re.compile("^Trainer"))
    expect(trainer).to_contain_text(re.compile(r"epoch ([2-9]|\d\d)/60"))
    points = page.locator(".chart-grid figure").first.locator("circle")
    expect(points.nth(points.count() + 1)).to_be_attached()
    expect(page.locator("pre[id]")).to_contain_text("one_device")
    assert page.evaluate("window.isSameDocument")

    def follow_command(verb):
        """Runs the command that the page shows."""
        shown = page.locator(".command", has_text=f"sluice {verb} digits").first
        expect(shown).to_be_visible()
        assert start(verb, "digits").wait(LONG_MS / 1000) == 0

    follow_command("cancel")
    expect(page.locator(".state")).to_contain_text("interrupted")
    # One that has ended is not live.
    page.reload()
    follow_command("resume")
    page.reload()
    expect(page.locator(".state")).to_contain_text("succeeded")
    assert command.wait() == 130
    expect(page.get_by_text("Version 1 was pushed")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("")

    (run_dir,) = (path.parent for path in workspace.runs.glob("*/run.json"))
    record = json.loads((run_dir / "run.json").read_text())
    nodes = {node["id"]: node for node in record["nodes"]}
    shown = page.locator("table").last.locator("tbody tr th").all_inner_texts()
    assert shown == list(nodes)
    assert {node["state"] for node in nodes.values()} == {"ran"}
    lines, _ = progress.read(run_dir / "progress" / "Trainer.jsonl")
    restored = [line["epoch"] for line in lines if line["event"] == "restored"]
    assert len(restored) == 1 and restored[0] >= 2

    # The list, the live view and the report give one duration, without the pause.
    text = formats.seconds(duration_s(RunRecord.load(run_dir)))
    expect(page.locator(".state")).to_contain_text(f"{text} without pauses")
    assert text in (run_dir / "report.html").read_text()
    page.get_by_role("link", name="Report").click()
    expect(page.frame_locator("iframe").get_by_text(text).first).to_be_visible()
    # From the report to the list.
    page.get_by_role("link", name="digits").click()
    expect(page.get_by_role("row", name=run_dir.name)).to_contain_text(text)
    origin, own = ui[1].partition("/?")[0], f"/pipelines/digits/runs/{run_dir.name}/"
    for path in ("/", own, f"{own}report.html", "/pipelines/digits"):
        page.goto(origin + path)
        check_accessibility(page)


def check_accessibility(page):
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        found = Axe().run(page).response["violations"]
        assert [item for item in found if item["impact"] != "minor"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})
