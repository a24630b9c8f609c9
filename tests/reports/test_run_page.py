"""The page of a run: what the golden pages do not show."""

import base64
import hashlib
import re

import pytest

from reports import run_page
from reports.read_run import read_run
from reports.run_page import render_run
from sluice.errors import WorkspaceError
from sluice.record.parts import ErrorRecord
from sluice.record.verdict import Check, Verdict
from tests.kit import protos
from tests.kit.read_page import Page

pytestmark = pytest.mark.unit

RESIDUALS = {"split": "test", "examples": 0, "complete": True}
RESIDUALS |= {"targets": [], "largest": []}


def _spread(name, values, **stats):
    """Whole numbers, each of ``values`` a quantile; a list of 1 to 5 of them."""
    feature = protos.numeric(name, (), values, type="INT", **stats)
    feature["num_stats"]["common_stats"] |= {"max_num_values": "5"}
    return feature


def test_categories_have_a_bar_each_and_nothing_is_left_out(run_with, page_of):
    areas = [float(x) for x in (*range(1, 100), *[40] * 50, *[70] * 51)]
    names = ("area", "tract", "label", "n")
    found = [_spread(name, sorted(areas)) for name in names]
    splits = dict.fromkeys(("train", "eval", "test"), protos.split(*found))
    schema = {"feature": [{"name": "tract", "int_domain": {"is_categorical": True}}]}
    documents = {"statistics": {"splits": splits}, "schema": {"schema": schema}}
    config = {"features": {"area": {"kind": "hashed"}, "n": {"kind": "numeric"}}}
    html = render_run(run_with(documents, config=config))
    for name in ("area", "tract", "label"):
        start = html.index(f'aria-label="Values of {name}"')
        chart = html[start : html.index("</svg>", start)]
        assert "<title>70\ntrain: 26 %\neval: 26 %\ntest: 26 %</title>" in chart
        assert "<title>all others\ntrain: 48.5 %" in chart
    assert "<title>70\n" not in html[html.index('aria-label="Values of n"') :]
    first = re.findall(r'id="feature-\d+">\s*<figcaption><strong[^>]*>(\w+)<', html)[0]
    assert first == "label" and "label, int, 1 to 5 values, category" in html
    assert html.count("shares of all values</p>") == 3, "an example has several"
    label = {"feature": "label", "task": "regression"}
    html = render_run(run_with(documents, config={**config, "label": label}))
    assert "label, int, 1 to 5 values</span>" in html, "its numbers are no names"
    assert html.count("shares of all values</p>") == 2


def test_a_damaged_run_before_does_not_hide_the_verdict(run_with):
    run_with({"statistics": {"splits": 7}}, run_id="20251231T000000Z-aaaa")
    with read_run(run_with({"statistics": {"splits": []}}).run_dir) as run:
        text = Page(render_run(run)).text
    assert "what has changed since run 20251231T000000Z-aaaa is not known" in text
    assert "Version 3 was pushed" in text


def test_the_log_of_the_failed_node_is_open(run_with):
    run = run_with(status="failed", error=ErrorRecord("Trainer", "failed", None))
    (run.run_dir / "logs").mkdir()
    lines = "\n".join(f"<b>line {i}</b>\nWARNING:absl:a" for i in range(5000))
    (run.run_dir / "logs" / "Trainer.log").write_text(lines)
    (run.run_dir / "logs" / "start.log").write_text("of start")
    html = render_run(run)
    assert "<details open><summary>Trainer</summary>" in html
    assert "<details><summary>start</summary>" in html
    assert "&lt;b&gt;line 4999&lt;/b&gt;" in html and "line 4000&" not in html
    # Thirty lines, without those of libraries.
    assert "line 4970&" in html and "WARNING:absl" not in html


def test_the_page_loads_nothing_and_allows_only_its_own_script_and_style(run_with):
    page = Page(render_run(run_with()))
    names = [name for _, attributes in page.elements for name in attributes]
    assert "src" not in names and "style" not in names
    (icon,) = (str(found["href"]) for tag, found in page.elements if tag == "link")
    assert icon.startswith("data:image/svg+xml,")
    (policy,) = (
        attributes["content"] or ""
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    for name, text in page.inline.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_slices_have_a_row_for_missing_values_and_the_worst_is_on_top(run_with):
    kinds = {"good": 0.9, "bad": 0.6, "fair": 0.7}
    slices = [protos.slice_metrics({"auc": x}, kind=name) for name, x in kinds.items()]
    evaluated = protos.evaluation(protos.slice_metrics({"auc": 0.8}), *slices)
    rows = [
        Check(check="auc", slice=x, limit=0.5, comparison=">=", actual=y)
        for x, y in {"overall": 0.8, "kind: good": 0.9, "kind: bad": 0.6}.items()
    ]
    found = {"train": 0, "test": 19}
    splits = {
        name: protos.split(protos.text("kind", {"bad": 9.0}, missing=missing))
        for name, missing in found.items()
    }
    documents = {
        "metrics": evaluated,
        "statistics": {"splits": splits},
        "residuals": RESIDUALS,
    }
    config = {"evaluate": {"slices": [["kind"]]}}
    gates = [Verdict("model", tuple(rows))]
    run = run_with(documents, config=config, gates=gates)
    text = Page(render_run(run)).text
    assert not run.notices
    assert "kind: missing 19" in text
    assert "auc, kind: bad 0.6" in text and "auc, kind: good" not in text


def test_a_damaged_document_is_a_notice(run_with, monkeypatch):
    run = run_with({"ingestion": {"records": 3}, "statistics": {"splits": 7}})
    (run.run_dir / "documents" / "1.ingestion.json").write_text('{"kind": [')
    text = Page(render_run(run)).text
    assert "documents/1.ingestion.json cannot be read" in text
    assert "the section 'Data' cannot be drawn" in text
    assert "Version 3 was pushed" in text


def test_the_report_is_written_where_it_is_asked_for(run_with, tmp_path):
    run_dir = run_with().run_dir
    assert run_page.write_report(run_dir) == str(run_dir / "report.html")
    assert (run_dir / "report.html").read_text("utf-8").startswith("<!doctype html>")
    target = tmp_path / "page.html"
    assert run_page.write_report(run_dir, target) == str(target) and target.exists()
    with pytest.raises(WorkspaceError, match=r"the record of run .* cannot be read"):
        run_page.write_report(tmp_path)
