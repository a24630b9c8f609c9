"""A record full of hostile text and numbers: nothing runs, the layout holds."""

import base64
import zlib
from pathlib import Path

import pytest

from reports.run_page import write_report

pytestmark = pytest.mark.browser

# Each is prefixed to a text of the record, chosen by that text.
TEXTS = (
    "</script><script>document.title = 'run'</script>",
    "<img src=x onerror=\"document.title = 'run'\">",
    "\" onmouseover=\"document.title = 'run'\" autofocus onfocus='document.title = 1",
    "{{ 7 * 7 }}{% raise %}${7 * 7}",
    "<svg><style>* { display: none }</style></svg></style></title></textarea>-->",
    "\u202eright to left\u2066\u200b\u200d\ufeff",
    "\x00\x1b[31m\x7f\x85\u2028\u2029",
    "lone \ud800 surrogate \udfff",
    "javascript:alert(1)//",
    "ű日本語😀 ",
    "W" * 10_000,
    "many words " * 1_000,
)
# Values of these keys are terms of the format, or refer to something.
TERMS = (
    "aggregation at comparison created_at data ended_at gate kind model model_name "
    "predicted severity source started_at state status true type"
).split()
# Keys of these objects are text of the user, not of the format.
NAMED = (
    "anomaly_info config digests metrics packages records space splits tags values"
).split()
NUMBERS = ("NaN", "Infinity", "-Infinity", 1.7e308, -1.7e308, 5e-324, -0.0)


def hostile(value: str) -> str:
    return TEXTS[zlib.crc32(value.encode()) % len(TEXTS)] + value


def with_hostile_texts(value, key=""):
    if isinstance(value, dict):
        name = hostile if key in NAMED else str
        return {
            name(inner): with_hostile_texts(item, inner)
            for inner, item in value.items()
        }
    if isinstance(value, list):
        inner = "" if key in NAMED else key
        return [with_hostile_texts(item, inner) for item in value]
    if not isinstance(value, str) or key in TERMS or value.isdigit():
        return value
    if key == "bytes_value":
        text = hostile(base64.b64decode(value).decode()).encode(errors="replace")
        return base64.b64encode(text).decode()
    return hostile(value)


def with_hostile_numbers(value, key=""):
    """Changes documents: only there floats may be infinite or NaN."""
    if isinstance(value, dict) and "schema_version" not in value:
        return {
            name: with_hostile_numbers(item, name + key) for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            with_hostile_numbers(item, f"{number}{key}")
            for number, item in enumerate(value)
        ]
    if isinstance(value, float):
        return NUMBERS[zlib.crc32(f"{key} {value}".encode()) % len(NUMBERS)]
    return value


@pytest.fixture
def draw(write_run, tmp_path):
    """Draws the page of a run whose record was changed."""

    def draw(change):
        return Path(write_report(write_run(tmp_path, change=change)))

    return draw


def test_hostile_texts_are_only_shown(draw, report_pages):
    report = draw(with_hostile_texts)
    text = report.read_text("utf-8")
    for character in "\u202e\u2066\u200b\ufeff\x00\x1b\x7f\x85\u2028":
        assert character not in text
    with report_pages.open(report) as page:
        assert page.locator("script").count() == 1
        assert page.locator("img:not([src^='data:'])").count() == 0
        assert page.locator("svg style").count() == 0
        assert page.get_by_text("document.title = 'run'").count() > 20
        assert page.get_by_text(r"\u202eright to left").count() > 5
        assert page.get_by_text(r"lone \ud800 surrogate \udfff").count() > 5
        assert page.get_by_text("{{ 7 * 7 }}").count() > 5
        page.mouse.move(600, 400)
        assert page.title() not in ("run", "1")
        longest = page.evaluate(
            "Math.max(...[...document.querySelectorAll('main *')].map((element) =>"
            " Math.max(0, ...[...element.childNodes].filter((node) =>"
            " node.nodeType === Node.TEXT_NODE).map((node) => node.length))))"
        )
        assert longest <= 12_000
        report_pages.check_layout(page)


def test_hostile_numbers(draw, report_pages):
    with report_pages.open(draw(with_hostile_numbers)) as page:
        report_pages.check_layout(page)
        assert page.get_by_text("NaN").count() > 5
        broken = page.evaluate(
            "[...document.querySelectorAll('svg *')].flatMap((element) =>"
            " [...element.attributes].map((item) => item.value)).filter((value) =>"
            " /NaN|Infinity|inf|undefined/.test(value)).slice(0, 5)"
        )
        assert broken == []
