"""Opens reports in a browser, and checks what must hold for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

MAX_BYTES = 6_000_000
PHONE, TABLET, DESKTOP = 360, 800, 1280
_HEIGHT = 800
_PATIENCE_MS = 15_000
_IMPACTS = ("moderate", "serious", "critical")
_AXE = {"resultTypes": ["violations"]}
# The one rule whose result depends on the colours.
_AXE_COLORS = {**_AXE, "runOnly": ["color-contrast"]}
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
});
"""
_OPEN_DETAILS = """
document.querySelectorAll("details").forEach((box) => { box.open = true; });
"""
# What is inside of a box that scrolls may be wider than the page.
_TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => {
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible") return true;
    }
    return false;
  };
  return [...document.body.querySelectorAll("*")]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .filter((element) => !scrolls(element))
    .slice(0, 5).map((element) => element.outerHTML.slice(0, 200));
}"""


class ReportPages:
    """Reports in one browser.

    Attributes:
      SECTIONS: the headings of a report that lacks nothing.
    """

    SECTIONS = ("Verdict", "Model", "Data", "Training", "Run", "Serving", "Provenance")

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._axe = Axe()

    @contextmanager
    def open(
        self, path: Path, *, width: int = DESKTOP, **options: Any
    ) -> Iterator[Page]:
        """Opens a page from its file.

        Asserts at the end that the page has requested nothing but itself, that no
        script failed, and that its policy had to refuse nothing.

        Args:
          path: the file.
          width: of the window.
          **options: of the browser's context, such as ``color_scheme``.
        """
        address = path.absolute().as_uri()
        problems: list[str] = []

        def note(what: object, is_problem: bool = True) -> None:
            if is_problem:
                problems.append(str(what)[:300])

        size: Any = {"width": width, "height": _HEIGHT}
        with self._browser.new_context(viewport=size, **options) as context:
            context.set_default_timeout(_PATIENCE_MS)
            context.add_init_script(_REPORT_VIOLATIONS)
            page = context.new_page()
            page.on(
                "request",
                lambda sent: note(
                    sent.url,
                    sent.url.partition("#")[0] != address
                    and not sent.url.startswith("data:"),
                ),
            )
            page.on(
                "console",
                lambda said: note(said.text, said.type in ("error", "warning")),
            )
            page.on("pageerror", note)
            page.goto(address)
            yield page
            assert problems == []

    def check(self, path: Path, sections: Sequence[str] = SECTIONS) -> None:
        """Checks a report with all details open: sections, colours, widths, print.

        Args:
          path: the file.
          sections: the headings that it must have, in this order.
        """
        assert path.stat().st_size < MAX_BYTES
        with self.open(path) as page:
            self.check_layout(page, sections)
            self.check_accessibility(page)
            page.emulate_media(color_scheme="dark")
            self.check_accessibility(page, _AXE_COLORS)
            page.emulate_media(media="print")
            for selector in ("nav.sections", "button.small-button", ".tools"):
                assert page.locator(f"{selector} >> visible=true").count() == 0
            assert page.locator("thead button").first.is_visible()
            assert page.pdf().startswith(b"%PDF")

    def check_layout(self, page: Page, sections: Sequence[str] = SECTIONS) -> None:
        """Asserts that sections are there, and that it fits, with all details open.

        Args:
          page: stays so.
          sections: the headings that it must have, in this order.
        """
        headings = page.locator("main > section > h2").all_inner_texts()
        assert tuple(headings) == tuple(sections)
        links = page.locator("nav.sections a").all_inner_texts()
        assert [link.removesuffix("failed").strip() for link in links] == headings
        assert page.get_by_text("cannot be drawn").count() == 0
        page.evaluate(_OPEN_DETAILS)
        self.check_widths(page)

    def check_widths(self, page: Page) -> None:
        """Asserts that the page itself never scrolls sideways."""
        for width in (PHONE, TABLET, DESKTOP):
            page.set_viewport_size({"width": width, "height": _HEIGHT})
            assert (width, page.evaluate(_TOO_WIDE)) == (width, [])
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    def check_accessibility(self, page: Page, options: dict[str, Any] = _AXE) -> None:
        """Asserts that axe-core finds nothing moderate or worse."""
        found = self._axe.run(page, options=options).response["violations"]
        assert [
            (item["id"], node["target"], node["failureSummary"], node["html"][:200])
            for item in found
            if item["impact"] in _IMPACTS
            for node in item["nodes"][:3]
        ] == []
