"""What each kind of page says, as texts that a person reviews in a diff.

``UPDATE_GOLDEN=1 pytest tests/reports/test_golden_pages.py`` writes ``golden/`` anew.
"""

import base64
import json
from pathlib import Path

import pytest

from reports.compare import compare
from reports.diff_page import render_diff
from reports.environment import environment
from reports.read_run import read_run
from reports.run_index import make_index
from reports.run_page import render_run
from sluice.record.parts import ErrorRecord, NodeRecord, PushRecord
from tests.kit import protos
from tests.kit.page_text import check_golden, page_text
from tests.kit.runs import SECOND, a_check, a_gate

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).parent / "golden"


def page_of(run):
    """Draws the page of a run, without a notice."""
    html = render_run(run)
    assert not run.notices
    return page_text(html)


def section(page, name):
    """Returns the lines of a section."""
    return page.partition(f"## {name}\n")[2].partition("\n## ")[0] + "\n"


def test_a_pushed_model(taxi):
    check_golden(GOLDEN / "pushed.txt", page_of(taxi()))


def test_a_run_with_every_document(write_run, tmp_path):
    """Bad records, images, flips, residuals, trials, an override, a failed node."""
    with read_run(write_run(tmp_path, features=3, slices=2)) as run:
        check_golden(GOLDEN / "every_document.txt", page_of(run))


def _distance(feature, distance, limit=None, measure="Jensen-Shannon"):
    return {"feature": feature, "distance": distance, "limit": limit} | {
        "measure": measure
    }


def moved(documents):
    """Other metrics, losses and distances, the latter also without a limit."""
    for item in documents["metrics"]["metrics"]:
        for found in item["metric_keys_and_values"]:
            if "double_value" in found["value"]:
                found["value"]["double_value"] *= 0.9
            elif known := found["value"].get("bytes_value"):
                estimates = json.loads(base64.b64decode(known))
                for estimate in estimates["metrics"].values():
                    estimate["value"] *= 0.9
                content = base64.b64encode(json.dumps(estimates).encode())
                found["value"]["bytes_value"] = content.decode()
    losses = documents["epochs"]["metrics"]["val_loss"]
    losses[:] = [0.75 * value for value in losses]
    top = documents["statistics"]["splits"]["train"]["features"][0]
    top["string_stats"]["top_values"][0]["frequency"] = 2068.5
    features = {x["name"]: x for x in documents["schema"]["schema"]["feature"]}
    features["fare"]["float_domain"] = {"max": 5}
    code = documents["lineage"]["executions"][-1]["code"]
    code |= {"new": "1", sorted(code)[0]: "edited"}
    del code[sorted(code)[1]]
    train = documents["statistics"]["splits"]["train"]
    train["features"][1]["num_stats"]["mean"] = 30.0
    train["num_examples"] = "9000"
    comparisons = documents["distances"]["comparisons"]
    comparisons[0]["features"] += [
        _distance("fare", 0.11),
        _distance("trip_start_month", 0.3, measure="missing or NaN"),
    ]
    drift = [_distance("company", 0.04, 0.05), _distance("fare", 0.2)]
    comparisons += [
        {"check": "drift", "split": split, "against": "x", "features": drift}
        for split in ("eval", "train")
    ]


def private(documents):
    """One sensitive feature, and no examples."""
    statistics = documents["statistics"]
    statistics["privacy"]["sensitive"] = ["fare"]
    for split in statistics["splits"].values():
        for feature in split["features"]:
            if feature["path"]["step"] == ["fare"]:
                common = {"num_non_missing": "9"}
                feature["num_stats"] = {"common_stats": common}
    shown = {"privacy": {"private": True, "sensitive": ["fare"], "label": "x"}}
    documents["samples"] = {**shown, "records": {}, "features": []}
    documents["mistakes"] |= {**shown, "mistakes": []}


@pytest.mark.parametrize("change", [moved, private])
def test_data_that_moved_or_is_private(taxi, change):
    page = page_of(taxi(change))
    parts = [section(page, name) for name in ("Verdict", "Model", "Data")]
    check_golden(GOLDEN / f"{change.__name__}.txt", "\n".join(parts))


def test_two_runs_compared(taxi):
    before, after = taxi(run_id="a"), taxi(moved, run_id="b")
    after.record.config["train"]["epochs"] = 7
    after.record.packages["tfx"] = "1.21.0"
    after.record.gates = [a_gate("model", a_check("auc", limit=0.935, actual=0.8572))]
    span = {"span": 3, "version": 1, "date": None}
    before.record.spans = {"data": [span]}
    after.record.spans = {"data": [span, {**span, "span": 4, "date": "2026-01-02"}]}
    found = compare(before, after)
    check_golden(GOLDEN / "compared.txt", page_text(render_diff(found)))
    json.dumps(found.to_dict(), allow_nan=False)


def test_all_runs(taxi, run_with):
    old = taxi()
    runs = [taxi(moved, run_id=SECOND, tags={"<b>": ""}), old]
    # Its documents are those of the run before.
    runs.insert(0, taxi(run_id="20260103T000000Z-cccc"))
    runs.append(run_with(run_id="20260101T000000Z-cccc", status="blocked", pushes=[]))
    index = make_index(runs, lambda run: run.record.run_id)
    text = "{{ ui.trends(index) }}<h2>Runs</h2>{{ ui.table(index.table) }}"
    page = environment().from_string(text).render(index=index)
    check_golden(GOLDEN / "all_runs.txt", page_text(page))


BLOCKED = {"status": "blocked", "pushes": [PushRecord("/serving", "blocked")]}
WHERE = "  where:    model.py:10 in call\n  try:      the log"
GENERATED = NodeRecord("TFRecordGen", "TFRecordGen", "ran", 1.0)
MISS = a_check("accuracy", actual=0.5, result="FAIL")
MANY = [a_check(f"m{i}", actual=0.5, result="FAIL") for i in range(7)]
DAMAGED = a_check("damaged records", limit=0, actual=3, result="FAIL")
REPAIR = {"remedy": "write the files again", "command": None}
SCHEMA = {"remedy": "correct the schema", "command": "schema diff"}
NOTHING = {"pushes": [PushRecord("/serving")], "gates": []}
VERDICTS = {
    "model gate": {**BLOCKED, "gates": [a_gate("model", MISS, *MANY)]},
    "data gate": {
        **BLOCKED,
        "gates": [a_gate("data", a_check("x", result="FAIL", **SCHEMA))],
    },
    "damaged": {
        **BLOCKED,
        "gates": [a_gate("data", a_check("x", result="FAIL", **REPAIR))],
    },
    "overridden": {"gates": [a_gate("data", DAMAGED, override="known")]},
    "failed": {
        **NOTHING,
        "status": "failed",
        "error": ErrorRecord("Trainer", f"it broke\n{WHERE}", None, ["a line"]),
        "resume_command": "sluice resume digits --run 1",
    },
    "interrupted": {
        **NOTHING,
        "status": "interrupted",
        "nodes": [NodeRecord("Trainer", "Trainer", "interrupted")],
    },
    "running": {
        **NOTHING,
        "status": "running",
        "command": "sluice run digits --workspace 'a b' --set x=1",
        "ended_at": None,
        "nodes": [GENERATED, NodeRecord("Trainer", "Trainer", "running")],
    },
    "up to date": {
        "status": "up_to_date",
        "pushes": [PushRecord("/serving", "already_served", 3, "/serving/3")],
    },
    "refused": {**NOTHING, "nodes": [], "status": "failed", "config": {}},
    "rehearsed": {"tags": {"rehearsal": "round 1"}},
}


def test_the_verdict_says_what_decided_and_what_to_do(run_with):
    pages = {
        name: page_of(run_with(**changes, run_id=f"202601{number + 1:02}T000000Z-aaaa"))
        for number, (name, changes) in enumerate(VERDICTS.items())
    }
    texts = [f"=== {name}\n{section(x, 'Verdict')}" for name, x in pages.items()]
    texts.append(f"=== a rehearsed run\n{section(pages['rehearsed'], 'Run')}")
    check_golden(GOLDEN / "verdicts.txt", "\n".join(texts))


def _both(metrics, **where):
    """Returns a slice's metrics of both models: name -> (candidate, baseline)."""
    count, share = metrics["example_count"][0], metrics["accuracy"][0]
    known = protos.estimates(count, accuracy=share)
    metrics = {**metrics, **{name: (value, {}) for name, value in known.items()}}
    return [
        protos.slice_metrics(
            {name: x[i] for name, x in metrics.items()}, model, **where
        )
        for i, model in enumerate(("candidate", "baseline"))
    ]


def _against_baseline(wrong, **accuracies):
    """Accuracies by slice, and of how many no and yes are wrong, before and now."""
    counts = [[1786 - no, no, yes, 464 - yes] for no, yes in wrong]
    totals = {"everywhere": 2250.0, "Cash": 1000.0, "Card": 700.0, "Check": 12.0}
    slices = []
    for name, values in accuracies.items():
        found = {"accuracy": values, "example_count": (totals[name],) * 2}
        if name == "everywhere":
            found["prediction_histogram"] = counts
            found["examples_per_class"] = [[1786, 464]] * 2
            slices += _both(found)
        else:
            slices += _both(found, pay=name)
    return protos.evaluation(*slices)


def _matrix(size, **errors):
    """Confusion matrices by model: so many examples of class 0 are taken for 1."""
    plots = []
    for model, wrong in errors.items():
        entries: list[dict[str, float]] = [
            {"actual_class_id": i, "predicted_class_id": i, "num_weighted_examples": 10}
            for i in range(size)
        ]
        # As in JSON, where a 0 is missing.
        entries.append({"predicted_class_id": 1, "num_weighted_examples": wrong})
        del entries[0]["actual_class_id"], entries[0]["predicted_class_id"]
        # Without a label, and with no probability above the threshold.
        entries.append({"actual_class_id": -1, "num_weighted_examples": 7.0})
        entries.append({"predicted_class_id": -1, "num_weighted_examples": 7.0})
        tables = {"matrices": [{"entries": entries}, {"threshold": 0.5}]}
        value = {"multi_class_confusion_matrix_at_thresholds": tables}
        key = {"model_name": model}
        plots.append({"plot_keys_and_values": [{"key": key, "value": value}]})
    metrics = protos.slice_metrics({"examples_per_class": [10] * size})
    return protos.evaluation(metrics, plots=plots)


POOLED = protos.slice_metrics(
    {
        **{"auc": 0.75, "binary_accuracy": 0.75, "recall": 0.5, "example_count": 40.0},
        "examples_per_class": [30, 0],
    }
)
EVALUATIONS = {
    "worse in two places, the most harmful first; 12 examples may be chance": (
        _against_baseline(
            [(249, 40), (182, 60)],
            everywhere=(0.952, 0.95),
            Cash=(0.943, 0.971),
            Card=(0.79, 0.8),
            Check=(0.5, 1.0),
        ),
        {},
    ),
    "not worse beyond chance": (
        _against_baseline(
            [(190, 60), (182, 60)], everywhere=(0.947, 0.95), Check=(0.5, 1.0)
        ),
        {},
    ),
    "without a baseline: the worst first; intervals of TFMA, one class": (
        protos.evaluation(
            protos.slice_metrics({"auc": 0.8, "loss": 0.5}),
            *(
                protos.slice_metrics(
                    {"auc": value, "examples_per_class": counts}, where=name
                )
                for name, value, counts in (
                    ("good", 0.9, [50, 5]),
                    ("bad", (0.6, 0.5, 0.7), [5, 5]),
                    ("one class", 0.0, [50, 0]),
                )
            ),
        ),
        {"gates": [a_gate("model", a_check("auc"))]},
    ),
    "sorted by harm; a limit within the interval": (
        protos.evaluation(
            *_both({"accuracy": (0.96, 0.96), "example_count": (300.0, 300.0)}),
            *(
                part
                for name, count, values in (
                    ("few", 10.0, (0.7, 0.9)),
                    ("many", 1000.0, (0.875, 0.9)),
                    ("better", 400.0, (0.95, 0.9)),
                )
                for part in _both(
                    {"accuracy": values, "example_count": (count, count)}, where=name
                )
            ),
        ),
        {"gates": [a_gate("model", a_check(limit=0.97, comparison=">="))]},
    ),
    "one class": (protos.evaluation(POOLED), {}),
    # Found: pooled over two classes, of which an example may have both or none.
    "several labels have no counts of one class": (
        protos.evaluation(POOLED),
        {"config": {"label": {"feature": "label", "task": "multi_label"}}},
    ),
    "weighted": (
        protos.evaluation(
            protos.slice_metrics(
                {
                    **{"auc": 0.9, "accuracy": 0.9, "example_count": 100.0},
                    **{"effective_example_count": 20.0, "examples_per_class": [60, 40]},
                }
            )
        ),
        {"config": {"train": {"sample_weight": "price"}}},
    ),
    "few classes": (_matrix(3, candidate=1.0, baseline=3.0), {}),
    "many classes": (_matrix(30, candidate=4.0), {}),
}


def test_how_models_compare(run_with):
    texts = []
    for number, (name, (metrics, changes)) in enumerate(EVALUATIONS.items()):
        run_id = f"202601{number + 1:02}T000000Z-aaaa"
        page = page_of(run_with({"metrics": metrics}, run_id=run_id, **changes))
        parts = [section(page, part) for part in ("Verdict", "Model")]
        texts.append(f"=== {name}\n" + "".join(parts))
    check_golden(GOLDEN / "evaluations.txt", "\n".join(texts))
