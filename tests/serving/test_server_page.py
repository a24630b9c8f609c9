"""The page of a server in a real browser, with real models."""

import json
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.kit.half_plus_two import listening, make_core, save_half_plus_two

pytestmark = [pytest.mark.tf, pytest.mark.browser, pytest.mark.usefixtures("tf")]


@pytest.fixture(scope="module")
def server(image_model_dir, tabular_model_dir, tmp_path_factory):
    """A server in a thread: its address, and how a version is replaced."""
    images = tmp_path_factory.mktemp("images") / "1"
    shutil.copytree(image_model_dir, images)
    kinds = {"features": {"image": {"kind": "image"}}}
    (images / "assets.extra" / "features.json").write_text(json.dumps(kinds))
    half = save_half_plus_two(tmp_path_factory.mktemp("half") / "123")
    core = make_core({"tips": tabular_model_dir, "digits": images, "half": half})
    with listening(core) as (port, loop):

        def push(name: str, directory, number: int):
            model = core.models[name]
            servable = model.load(directory, number)
            loop.call_soon_threadsafe(model.serve, servable)

        yield f"http://127.0.0.1:{port}/", push


@pytest.fixture
def page(server, browser):
    """The page; nothing may go wrong in it, or be requested elsewhere."""
    problems: list[str] = []

    def note(what: str, is_problem: bool) -> None:
        # A browser also notes answers that the page expects and shows.
        if is_problem and "the server responded with a status of 40" not in what:
            problems.append(what)

    with browser.new_context(viewport={"width": 360, "height": 800}) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.on("pageerror", lambda error: note(str(error), True))
        page.on("console", lambda said: note(said.text, said.type == "error"))
        own = (server[0], "blob:", "data:")
        page.on("request", lambda sent: note(sent.url, not sent.url.startswith(own)))
        page.goto(server[0])
        yield page
    assert problems == []


def test_image(page, server, image_model_dir, tf, tmp_path):
    image = tmp_path / "bright.png"
    pixels = tf.fill([4, 4, 1], tf.constant(250, tf.uint8))
    image.write_bytes(tf.io.encode_png(pixels).numpy())
    page.get_by_label("Model").select_option("digits")
    page.get_by_label("drop an image").set_input_files(image)
    expect(page.locator("#answer strong")).to_have_text("bright")
    expect(page.locator("#answer p")).to_contain_text("of version 1")
    expect(page.locator("#answer tr")).to_have_count(3)
    expect(page.locator("#answer tr").first).to_contain_text("bright")
    server[1]("digits", image_model_dir, 2)
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#version")).to_have_text("version 2")


def test_row_with_missing_and_wrong_values(page):
    page.get_by_label("Model").select_option("tips")
    page.get_by_label("riders").fill("2")
    page.get_by_label("payment").fill("Cash")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer strong")).to_have_text("yes")
    # sigmoid(-0.25 + 2 * 2 + 0.5): miles are missing.
    expect(page.locator("#answer tr").first).to_contain_text("0.9859")
    page.get_by_label("riders").fill("two")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer .wrong")).to_contain_text("riders: two is not")
    found = Axe().run(page).response["violations"]
    assert [x["id"] for x in found if x["impact"] in ("serious", "critical")] == []


def test_model_of_others(page):
    page.get_by_label("Model").select_option("half")
    page.locator("form input").fill("[1, 2]")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer td")).to_contain_text("2.5")
