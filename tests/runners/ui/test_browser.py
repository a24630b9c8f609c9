"""The local server in a real browser, with a real run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from reports import formats
from reports.run_table import duration_s
from sluice import progress
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

LONG_MS = 240_000
RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{4}$")


@pytest.fixture(scope="module")
def ui(project, start_ui, tmp_path_factory):
    """Yields the workspace of digits, and the printed address."""
    workspaces = tmp_path_factory.mktemp("ui") / "workspaces"
    with start_ui(project, SLUICE_WORKSPACE=str(workspaces)) as (_, printed):
        yield Workspace(workspaces / "digits"), printed["url"]


@pytest.fixture
def page(ui, browser):
    """A page at the printed address; at the end, nothing may have gone wrong in it."""
    context = browser.new_context()
    context.set_default_timeout(LONG_MS)
    expect.set_options(timeout=LONG_MS)
    page, problems = context.new_page(), []
    origin = ui[1].partition("/?")[0]

    def note_error(said):
        if said.type == "error":
            problems.append(said.text)

    def note_foreign(sent):
        if not sent.url.startswith(origin):
            problems.append(sent.url)

    page.on("console", note_error)
    page.on("request", note_foreign)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(ui[1])
    yield page
    context.close()
    assert problems == []


def test_a_run_is_followed_stopped_and_resumed(ui, page, project):
    workspace = ui[0]
    place = f"--workspace={workspace.root.parent}"
    # So many that the training has not ended when it is stopped.
    options = ["--set=train.epochs=60", "--set=train.early_stopping=null"]
    words = ["run", "digits", *options, place]
    command = subprocess.Popen(
        [Path(sys.executable).with_name("sluice"), *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(own_root())},
        stdout=subprocess.DEVNULL,
    )
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
    expect(page.get_by_role("link", name="Resume")).to_have_count(0)

    for button, state in (("Stop", "interrupted"), ("Resume", "succeeded")):
        page.get_by_role("link", name=button).click()
        expect(page.locator(".command")).to_contain_text(place)
        page.get_by_role("button", name=button).click()
        expect(page.get_by_text("ended with exit code 0")).to_be_visible()
        page.get_by_role("link", name="The run").click()
        expect(page.locator(".state")).to_contain_text(state)
    assert command.wait() == 130
    expect(page.get_by_text("Version 1 was pushed")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("")
    expect(page.get_by_role("link", name="Run again")).to_have_count(1)
    expect(page.get_by_role("link", name=re.compile("Stop|Resume"))).to_have_count(0)

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
    expect(page).to_have_title(re.compile(f"{run_dir.name}$"))
    page.go_back()
    page.get_by_role("link", name="digits").click()
    expect(page.get_by_role("row", name=run_dir.name)).to_contain_text(text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_phone(ui, page, scheme):
    page.emulate_media(color_scheme=scheme)
    origin, axe = ui[1].partition("/?")[0], Axe()
    run = f"/pipelines/digits/runs/{ui[0].run_ids()[0]}/"
    paths = ["/", *(f"/pipelines/digits{name}" for name in ("", "/models", "/data"))]
    for path in [*paths, run, f"{run}do/run"]:
        page.goto(origin + path)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            found = axe.run(page).response["violations"]
            bad = [item for item in found if item["impact"] in ("serious", "critical")]
            assert bad == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
