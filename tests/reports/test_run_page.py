"""A record with real documents -> its page: facts by the label of their row."""

import base64
import hashlib
import json
import re

import pytest

from reports import run_page
from reports.formats import MISSING
from reports.read_run import read_run
from reports.run_page import render_run
from reports.run_table import metrics
from reports.sections import features
from reports.sections.features import largest_shifts
from sluice.errors import WorkspaceError
from sluice.record.parts import ErrorRecord, NodeRecord, PushRecord
from tests.kit import protos
from tests.kit.read_page import Page
from tests.kit.runs import SECOND, a_check, a_gate

pytestmark = pytest.mark.unit

BLOCKED = {"status": "blocked", "pushes": [PushRecord("/serving", "blocked")]}


def _row(page, table, **wanted):
    """Returns the row of a table that has some texts."""
    rows = page.tables[table]
    (found,) = (row for row in rows if wanted.items() <= row.items())
    return found


def test_the_page_of_a_pushed_model(taxi, page_of):
    page = page_of(taxi())
    text = page.text
    assert "Version 2 was pushed: data and model gates passed." in text
    assert "Not pushed" not in text and "What to do next" not in text
    auc = _row(page, "gate-model", Check="auc", **{"Slice or split": "overall"})
    assert (auc["Result"], auc["Limit"], auc["Actual"]) == ("pass", "≥ 0.935", "0.9524")
    train = _row(page, "examples", Split="train")
    assert (train["Examples"], train["Share"]) == ("10,502", "70 %")
    trainer = _row(page, "nodes", Node="Trainer")
    assert trainer["State"] == "done" and trainer["Peak memory"].endswith("B")
    epoch = page.tables["epochs-0"][0]
    assert (epoch["Epoch"], epoch["loss"], epoch["val_auc"]) == (
        "1",
        "0.6017",
        "0.6592",
    )
    layer = page.tables["model-0"][0]
    assert (layer["Layer"], layer["Output shape"]) == ("company_xf", "[?, 1]")
    version = _row(page, "served", Version="2")
    assert version["Pushed by run"] == "this run"
    company = _row(page, "signature-0", Name="company")
    assert (company["Direction"], company["Type"]) == ("input", "string")
    assert page.tables["lineage"][0]["What"] == "Version 2"
    assert page.tables["lineage"][-1]["What"].startswith("Data")
    epochs = _row(page, "config", Key="train.epochs")
    assert json.loads(epochs["Value"]) > 1
    assert _row(page, "packages", Package="tfx")["Version"]
    assert re.search(r"Code [0-9a-f]{64}", text)
    fare = _row(page, "schema", Feature="fare")
    assert (fare["Type"], fare["Values per example"]) == ("FLOAT", "1")


def test_features_with_their_distances(taxi, page_of):
    page = page_of(taxi())
    company = _row(page, "features", Feature="company")
    assert (company["Type"], company["Missing"]) == ("text", "34.3 %")
    assert company["Train against eval"] == "0.0133 ≤ 0.050"
    fare = _row(page, "features", Feature="fare")
    assert (fare["Type"], fare["Median, or most frequent"]) == ("float", "7.850")
    assert "train against eval: L-infinity 0.0133, limit 0.050" in page.text
    html = render_run(taxi(run_id=SECOND))
    assert "52.5 %" in html, "of the trips with a company"
    # Of the records: 8.72, 7.56 and 7.51 % of the trips began in a July.
    assert "<title>7\ntrain: 8.7 %\neval: 7.6 %\ntest: 7.5 %</title>" in html


def _distance(feature, distance, limit=None, measure="Jensen-Shannon"):
    return {"feature": feature, "distance": distance, "limit": limit} | {
        "measure": measure
    }


def test_the_feature_that_moved_most_comes_first_with_or_without_a_limit(taxi, page_of):
    def move(documents):
        (against_eval,) = documents["distances"]["comparisons"]
        against_eval["features"] += [
            _distance("fare", 0.11),
            _distance("trip_start_month", 0.3, measure="missing or NaN"),
        ]
        drift = [_distance("company", 0.04, 0.05), _distance("fare", 0.2)]
        documents["distances"]["comparisons"] += [
            {"check": "drift", "split": split, "against": "x", "features": drift}
            for split in ("eval", "train")
        ]

    run = taxi(move)
    page = page_of(run)
    rows = page.tables["features"]
    names = [row["Feature"] for row in rows]
    assert names == ["trip_start_month", "fare", "company", "payment_type"]
    columns = ("Since the accepted data", "Train against eval")
    assert [[row[x] for x in columns] for row in rows[:3]] == [
        [MISSING, "0.300"],
        ["0.200", "0.110"],
        ["0.040 ≤ 0.050", "0.0133 ≤ 0.050"],
    ]
    assert "train against eval: missing or NaN changes by 30 %" in page.text
    assert "train since the accepted data: Jensen-Shannon 0.200, no limit" in page.text
    shifts = [(x.name, round(y.value, 3)) for x, y, _ in largest_shifts(run, 3)]
    assert shifts == [("fare", 0.2), ("company", 0.04)]
    assert "Values of fare" in str(largest_shifts(run, 1)[0][2])


def _spread(name, values, **stats):
    """Whole numbers, each of ``values`` a quantile; a list of 1 to 5 of them."""
    feature = protos.numeric(name, (), values, type="INT", **stats)
    lengths = [
        {"low_value": low, "high_value": low + 1, "sample_count": 50.0}
        for low in (1, 4)
    ]
    feature["num_stats"]["common_stats"] |= {
        "max_num_values": "5",
        "num_values_histogram": {"type": "QUANTILES", "buckets": lengths},
    }
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
    lengths = html[html.index('aria-label="Lengths of n"') :]
    assert "<title>5\ntrain: 50 %" in lengths and "number of values" in lengths
    first = re.findall(r'id="feature-\d+">\s*<figcaption><strong[^>]*>(\w+)<', html)[0]
    assert first == "label" and "label, int, 1 to 5 values, category" in html
    assert html.count("shares of all values</p>") == 3, "an example has several"
    label = {"feature": "label", "task": "regression"}
    html = render_run(run_with(documents, config={**config, "label": label}))
    assert "label, int, 1 to 5 values</span>" in html, "its numbers are no names"
    assert html.count("shares of all values</p>") == 2


def test_a_label_beyond_the_last_card_is_drawn(run_with):
    names = [*(f"feature {i}" for i in range(features.MAX_CARDS)), "label"]
    found = protos.split(*(protos.text(name, {"a": 60.0}) for name in names))
    html = render_run(run_with({"statistics": {"splits": {"train": found}}}))
    assert 'aria-label="Values of label"' in html
    targets = {*re.findall(r'id="(feature-\d+)"', html)}
    assert {*re.findall(r'href="#(feature-\d+)"', html)} == targets
    assert len(targets) == features.MAX_CARDS + 1


def test_how_a_classifier_errs(taxi, page_of):
    page = page_of(taxi())
    auc = _row(page, "metrics-0", Metric="auc")
    assert (auc["Value"], auc["Baseline"]) == ("0.9524", "0.9524")
    card = _row(page, "slices-0", Slice="payment_type: Credit Card")
    assert (card["Examples"], card["auc"]) == ("714", "0.6603")
    cash = _row(page, "slices-0", Slice="payment_type: Cash")
    assert cash["auc"] == "one class"
    assert cash["binary_accuracy"].endswith(" 0 errors of 1,519")
    half = _row(page, "thresholds", Threshold="0.50")
    right, wrong = half["True positive"], half["False positive"]
    assert (right, wrong, half["False negative"]) == ("416", "182", "48")
    worst = page.tables["classes"][0]
    assert (worst["Class"], worst["F1"]) == ("1", "0.7834")
    assert worst["Recall"] == "0.897 (0.866 to 0.921), 48 errors of 464"
    assert "230 of 2,250 predictions on test were wrong (10.2 %)." in page.text
    mistake = page.tables["mistakes-0"][0]
    assert (mistake["Probability"], mistake["fare"]) == ("87.5 %", "5")
    html = render_run(taxi(run_id=SECOND))
    for name in ("ROC curve", "Precision-recall curve", "Calibration"):
        assert f'aria-label="{name}"' in html


def test_slices_are_worst_first_and_intervals_beside_values(run_with, page_of):
    slices = [
        protos.slice_metrics({"auc": value, "examples_per_class": counts}, where=name)
        for name, value, counts in (
            ("good", 0.9, [50, 5]),
            ("bad", (0.6, 0.5, 0.7), [5, 5]),
            ("one class", 0.0, [50, 0]),
        )
    ]
    overall = protos.slice_metrics({"auc": 0.8, "loss": 0.5})
    found = {"metrics": protos.evaluation(overall, *slices)}
    page = page_of(run_with(found, gates=[a_gate("model", a_check("auc"))]))
    rows = page.tables["slices-0"]
    assert [row["Slice"].removeprefix("where: ") for row in rows] == [
        *("bad (few examples)", "good", "one class")
    ]
    shown = [row["auc"] for row in rows]
    assert shown == ["0.600 (0.500 to 0.700)", "0.9000", "one class"]


def test_metrics_of_several_labels_have_no_counts_of_one_class(run_with, page_of):
    """Pooled over two classes, of which an example may have both or none."""
    found = {"auc": 0.75, "binary_accuracy": 0.75, "recall": 0.5, "example_count": 40.0}
    overall = protos.slice_metrics({**found, "examples_per_class": [30, 0]})
    documents = {"metrics": protos.evaluation(overall)}
    one = page_of(run_with(documents)).tables["metrics-0"]
    assert [row["Value"] for row in one[:2]] == [
        *("one class", "0.750 (0.598 to 0.858), 10 errors of 40")
    ]
    config = {"label": {"feature": "label", "task": "multi_label"}}
    run = run_with(documents, config=config)
    rows = page_of(run).tables["metrics-0"]
    assert [row["Value"] for row in rows] == ["0.7500", "0.7500", "0.5000", "40"]
    assert metrics(run)["overall", "auc"] == 0.75


def test_slices_are_sorted_by_harm_and_a_near_limit_is_named(run_with, page_of):
    slices = [
        protos.slice_metrics(
            {"accuracy": value, "example_count": count}, model, where=name
        )
        for name, count, new, old in (
            ("few", 10.0, 0.7, 0.9),
            ("many", 1000.0, 0.875, 0.9),
            ("better", 400.0, 0.95, 0.9),
        )
        for model, value in (("candidate", new), ("baseline", old))
    ]
    metrics = {"accuracy": 0.96, "example_count": 300.0}
    overall = [protos.slice_metrics(metrics, x) for x in ("candidate", "baseline")]
    gate = a_gate("model", a_check("accuracy", limit=0.97, comparison=">="))
    found = {"metrics": protos.evaluation(*overall, *slices)}
    page = page_of(run_with(found, gates=[gate]))
    rows = page.tables["slices-0"]
    assert [(row["Slice"], row["Change"]) for row in rows] == [
        ("where: many", "-0.025 worse"),
        ("where: better", "+0.05 better"),
        ("where: few (few examples)", "-0.2"),
    ]
    row = _row(page, "metrics-0", Metric="accuracy")
    assert row["Value"] == "0.960 (0.931 to 0.977), 12 errors of 300"
    assert (
        "accuracy: the limit 0.97 lies within the interval, 0.931 to 0.977: on other "
        "data of this size the gate might decide otherwise." in page.text
    )
    assert ("td", "0.96") in [(x, y.get("data-value")) for x, y in page.elements]


def _matrix(size, errors=4.0, model=""):
    entries = [
        {"actual_class_id": i, "predicted_class_id": i, "num_weighted_examples": 10.0}
        for i in range(size)
    ]
    # As in JSON, where a 0 is missing.
    entries.append({"predicted_class_id": 1, "num_weighted_examples": errors})
    del entries[0]["actual_class_id"], entries[0]["predicted_class_id"]
    # Without a label, and with no probability above the threshold.
    entries.append({"actual_class_id": -1, "num_weighted_examples": 7.0})
    entries.append({"predicted_class_id": -1, "num_weighted_examples": 7.0})
    tables = {"matrices": [{"entries": entries}, {"threshold": 0.5}]}
    name = "multi_class_confusion_matrix_at_thresholds"
    key = {"model_name": model} if model else {}
    plot = {"plot_keys_and_values": [{"key": key, "value": {name: tables}}]}
    metrics = protos.slice_metrics({"examples_per_class": [10] * size})
    return {"metrics": protos.evaluation(metrics, plots=[plot])}


def test_classes_that_are_confused(run_with, page_of):
    html = render_run(run_with(_matrix(3)))
    assert (
        'class="number wrong shade-5" title="28.6 % of the true class">4</td>' in html
    )
    worst = {row["Class"]: row for row in Page(html).tables["classes"]}
    shares = worst["0"]["Recall"], worst["1"]["Precision"]
    assert shares == ("0.714 (0.454 to 0.883), 4 errors of 14",) * 2
    page = page_of(run_with(_matrix(30), run_id=SECOND))
    (pair,) = page.tables["confused"]
    assert (pair["True class"], pair["Predicted"], pair["Examples"]) == ("0", "1", "4")


def test_the_matrix_is_compared_with_the_baselines_and_names_its_axes(run_with):
    found = _matrix(3, 1.0, "candidate")["metrics"]
    found["plots"] += _matrix(3, 3.0, "baseline")["metrics"]["plots"]
    html = render_run(run_with({"metrics": found}))
    # One of eleven of a class is seen, and two errors less are better.
    assert 'wrong shade-3" title="9.1 % of the true class">1</td>' in html
    assert 'right shade-4" title="18.2 % of the true class">-2</td>' in html
    assert html.count('colspan="3">Predicted class</th>') == 2
    assert html.count("<span>True class</span>") == 2


def test_bad_records_spans_and_images(write_run, tmp_path, page_of):
    with read_run(write_run(tmp_path)) as run:
        page = page_of(run)
    assert "1 record in the quarantine (checksum: 1), 10 B lost." in page.text
    (bad,) = page.tables["bad-records"]
    assert (bad["Kind"], bad["Record"], bad["Offset in bytes"]) == (
        "checksum",
        "3",
        "70",
    )
    span = _row(page, "spans", Span="1")
    assert (span["train"], span["Files"], span["Bad records"]) == ("100", "3", "3")
    assert "Data gate: passed , see its checks ." in page.text
    assert "by hand: by hand." in page.text
    assert "leak Equal images: 1 image in 1 group, 1 group across splits" in page.text
    pictures = [x for x in page.elements if x[0] == "img"]
    assert {x["alt"] for _, x in pictures} >= {"class yes, 1 x 1 PNG"}
    features = [row["Feature"] for row in page.tables["features"]]
    assert features[0] == "feature 1", "the one that missed"


def test_private_and_sensitive_data_is_hidden(taxi, page_of):
    def hide(documents):
        statistics = documents["statistics"]
        statistics["privacy"]["sensitive"] = ["fare"]
        for split in statistics["splits"].values():
            for feature in split["features"]:
                if feature["path"]["step"] == ["fare"]:
                    common = {"num_non_missing": "9"}
                    feature["num_stats"] = {"common_stats": common}
        private = {"privacy": {"private": True, "sensitive": ["fare"], "label": "x"}}
        documents["samples"] = {**private, "records": {}, "features": []}
        documents["mistakes"] |= {**private, "mistakes": []}

    page = page_of(taxi(hide))
    assert "no samples of the data are shown" in page.text
    assert "no examples are shown" in page.text
    assert "Sensitive features are withheld: fare" in page.text
    fare = _row(page, "features", Feature="fare")
    assert fare["Type"] == "float, sensitive"
    labels = [x.get("aria-label") for tag, x in page.elements if tag == "svg"]
    assert "Values of fare" not in labels and "Values of company" in labels


def test_a_service_run_a_rehearsal_and_a_resume(run_with, page_of):
    run = run_with(
        config={"cloud": {"engine": "vertex"}}, resumed_at=["2026-01-01T00:01:30+00:00"]
    )
    job = {"name": "7-8", "page": "https://console/#/runs?a=1&b=2"}
    (run.run_dir / "job.json").write_text(json.dumps(job))
    page = page_of(run)
    assert "Engine Vertex AI Job 7-8 Started" in page.text
    assert ("a", {"href": job["page"], "target": "_top"}) in page.elements
    run = run_with(tags={"rehearsal": "round 1"}, run_id=SECOND)
    assert "a service, rehearsed on this machine: round 1" in page_of(run).text


def test_a_large_graph_is_only_a_table(run_with, page_of):
    nodes = [NodeRecord(f"n{i}", "Kind", "ran") for i in range(201)]
    page = page_of(run_with(nodes=nodes))
    assert len(page.tables["nodes"]) == 201
    assert not [x for _, x in page.elements if x.get("class") == "sluice-graph"]


def test_a_run_that_was_refused_has_no_such_sections(run_with, page_of):
    page = page_of(run_with(nodes=[], gates=[], status="failed", config={}))
    assert "nodes" not in page.tables and "config" not in page.tables


RESUME = "sluice resume digits --run 1"
WHERE = "  where:    model.py:10 in call\n  try:      the log"
ACCEPT = "sluice run digits --accept-data 'REASON'"
GEN = NodeRecord("TFRecordGen", "TFRecordGen", "ran", 1.0)
MISS = a_check("accuracy", actual=0.5, result="FAIL")
MANY = [a_check(f"m{i}", actual=0.5, result="FAIL") for i in range(7)]
DAMAGED = a_check("damaged records", limit=0, actual=3, result="FAIL")
REPAIR = {"remedy": "write the files again", "command": None}
SCHEMA = {"remedy": "correct the schema", "command": "schema diff"}


@pytest.mark.parametrize(
    ("changes", "says", "commands"),
    [
        (
            {**BLOCKED, "gates": [a_gate("model", MISS, *MANY)]},
            "Not pushed: the model gate stopped the run. accuracy is 0.5000, 0.4700 ",
            ["sluice run digits --set KEY=VALUE"],
        ),
        (
            {
                **BLOCKED,
                "gates": [a_gate("data", a_check("x", result="FAIL", **SCHEMA))],
            },
            "Not pushed: the data gate stopped the run.",
            ["sluice schema diff digits", "sluice run digits", ACCEPT],
        ),
        (
            {
                **BLOCKED,
                "gates": [a_gate("data", a_check("x", result="FAIL", **REPAIR))],
            },
            "Write the files again. Then run it again; nodes that have not changed "
            "come from the cache: sluice run digits Copy Or accept it by hand Let the "
            f"data pass once, with a reason that is recorded: {ACCEPT}",
            ["sluice run digits", ACCEPT],
        ),
        (
            {"gates": [a_gate("data", DAMAGED, override="known")]},
            "data gate overridden by hand. 1 check of the data gate failed, accepted",
            [],
        ),
        (
            {
                "status": "failed",
                "pushes": [PushRecord("/serving")],
                "gates": [],
                "error": ErrorRecord("Trainer", f"it broke\n{WHERE}", None, ["a line"]),
                "resume_command": RESUME,
            },
            "Failed in Trainer: nothing was pushed. it broke; model.py:10 in call",
            [RESUME, "sluice run digits"],
        ),
        (
            {
                "status": "interrupted",
                "pushes": [PushRecord("/serving")],
                "nodes": [NodeRecord("Trainer", "Trainer", "interrupted")],
                "gates": [],
            },
            "Interrupted while Trainer ran: nothing was pushed",
            [],
        ),
        (
            {
                "status": "running",
                "command": "sluice run digits --workspace 'a b' --set x=1",
                "ended_at": None,
                "pushes": [PushRecord("/serving")],
                "nodes": [GEN, NodeRecord("Trainer", "Trainer", "running")],
                "gates": [],
            },
            "Running: 1 of 2 nodes ended.",
            [
                "sluice status digits --workspace 'a b'",
                "sluice cancel digits --workspace 'a b'",
            ],
        ),
        (
            {
                "status": "up_to_date",
                "pushes": [PushRecord("/serving", "already_served", 3, "/serving/3")],
            },
            "Nothing to do: version 3 is served already",
            [],
        ),
    ],
)
def test_the_verdict_says_what_decided_and_what_to_do(
    run_with, changes, says, commands
):
    html = render_run(run_with(**changes))
    assert says in Page(html).text and "`" not in Page(html).text
    verdict = html[html.index('id="verdict"') : html.index('id="run"')]
    found = re.findall(r'<div class="command"><pre>(.*?)</pre>', verdict)
    assert [x.replace("&#39;", "'") for x in found] == commands


def _against_baseline(old, new):
    """Returns documents with an accuracy by slice, and how often no and yes are wrong.

    ``old`` and ``new``: ``(accuracies by slice, examples, wrong)``.
    """
    examples = {None: 2250.0, "Cash": 1000.0, "Card": 700.0, "Check": 12.0}
    slices = []
    for model, (accuracies, wrong) in (("baseline", old), ("candidate", new)):
        counts = [1786 - wrong[0], wrong[0], wrong[1], 464 - wrong[1]]
        everywhere = {"examples_per_class": [1786, 464], "prediction_histogram": counts}
        for name, accuracy in accuracies.items():
            found = {"accuracy": accuracy, "example_count": examples[name]}
            where = {"pay": name} if name else {}
            found |= {} if name else everywhere
            slices.append(protos.slice_metrics(found, model, **where))
    return {"metrics": protos.evaluation(*slices)}


def test_a_pass_that_is_worse_says_where_the_most_harmful_first(run_with, page_of):
    old = {None: 0.95, "Cash": 0.971, "Card": 0.8, "Check": 1.0}
    new = {None: 0.952, "Cash": 0.943, "Card": 0.79, "Check": 0.5}
    run = run_with(_against_baseline((old, (182, 60)), (new, (249, 40))))
    page = page_of(run)
    says = (
        "Version 3 was pushed: model gate passed, and worse in: "
        "false positives (182 to 249), accuracy of pay: Cash (0.971 to 0.943)."
    )
    assert says in page.text
    assert ("div", {"class": "banner warn verdict"}) in page.elements
    rows = [(x["Metric"], x["Slice"], x["Change"]) for x in page.tables["moved"]]
    assert rows == [
        ("false positives", "overall", "+67 worse"),
        ("accuracy", "pay: Cash", "-0.028 worse"),
        ("false negatives", "overall", "-20 better"),
        ("accuracy", "overall", "+0.002"),
    ], "a change of 12 examples, or within the interval, may be chance"
    assert "0.943 (0.927 to 0.956)" in page.tables["moved"][1]["Candidate"]


def test_a_pass_that_is_not_worse_beyond_chance_stays_green(run_with, page_of):
    old, new = {None: 0.95, "Check": 1.0}, {None: 0.947, "Check": 0.5}
    page = page_of(run_with(_against_baseline((old, (182, 60)), (new, (190, 60)))))
    assert "was pushed: model gate passed. Version 3" in page.text
    assert ("div", {"class": "banner good verdict"}) in page.elements


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, []),
        ({"status": "blocked", "gates": [a_gate("model", MISS)]}, ["model"]),
        ({"status": "failed", "gates": [a_gate("model", MISS)]}, ["model", "run"]),
    ],
)
def test_what_has_failed_is_marked_beside_the_names_of_sections(taxi, changes, failed):
    html = render_run(taxi(**changes))
    links = re.findall(r'<a href="#(\w+)">\w+(.*?)</a></li>', html)
    assert [name for name, _ in links] == [
        *("verdict", "model", "data", "training", "run", "serving", "provenance")
    ]
    marked = [name for name, mark in links if '<span class="mark bad"><svg' in mark]
    assert marked == failed
    assert sum("failed</span>" in mark for _, mark in links) == len(failed)


def test_what_has_changed_since_the_last_run_that_pushed(run_with):
    run_with(run_id="20251231T000000Z-aaaa", config={"train": {"seed": 1}})
    blocked = [PushRecord("/serving", "blocked")]
    run_with(run_id="20251231T100000Z-aaaa", pushes=blocked, config={})
    with read_run(run_with(config={"train": {"seed": 2}}).run_dir) as run:
        page = Page(render_run(run))
    assert "config train.seed 1 → 2" in page.text
    links = [x.get("href") for tag, x in page.elements if tag == "a"]
    assert "../20251231T000000Z-aaaa/report.html" in links


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


def test_a_damaged_document_is_a_notice(run_with, monkeypatch):
    run = run_with({"ingestion": {"records": 3}, "statistics": {"splits": 7}})
    (run.run_dir / "documents" / "1.ingestion.json").write_text('{"kind": [')
    text = Page(render_run(run)).text
    assert "documents/1.ingestion.json cannot be read" in text
    assert "the section 'Data' cannot be drawn" in text
    assert "Version 3 was pushed" in text


def test_the_report_is_written_where_it_is_asked_for(run_with, tmp_path, monkeypatch):
    run_dir = run_with().run_dir
    assert run_page.write_report(run_dir) == str(run_dir / "report.html")
    assert (run_dir / "report.html").read_text("utf-8").startswith("<!doctype html>")
    target = tmp_path / "page.html"
    assert run_page.write_report(run_dir, target) == str(target) and target.exists()
    with pytest.raises(WorkspaceError, match=r"the record of run .* cannot be read"):
        run_page.write_report(tmp_path)
    monkeypatch.setattr("sys.argv", ["run_page", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        run_page.main()
    assert str(ended.value.code).startswith("error: the record of run ")
