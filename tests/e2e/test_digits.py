"""The digits pipeline on real images, as a user runs it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from runners.documents.examples import values_of
from sluice.errors import UsageError
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse
from sluice.workspace import locate
from tests.kit.read_page import Page, wrong_bars

pytestmark = pytest.mark.e2e

MAY_RUN_AGAIN = {"LatestBlessedModel"}


def _launch(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs ``sluice`` as a shell does."""
    return subprocess.run(
        [sys.executable, str(own_root() / "runners/cli/main.py"), *arguments],
        cwd=cwd,
        env={**os.environ, "SLUICE_WORKSPACE": "", "COLUMNS": "80"},
        capture_output=True,
        text=True,
    )


def _states(document: dict) -> dict[str, str]:
    return {node["id"]: node["state"] for node in document["nodes"]}


def _ran(record: RunRecord) -> set[str]:
    return {node.id for node in record.nodes if node.state in ("ran", "blocked")}


@pytest.fixture(scope="module")
def sluice(fork_command, project):
    """Runs ``sluice`` in the project, in a fork of a process that has imported TFX."""

    def sluice(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"SLUICE_WORKSPACE": "", "COLUMNS": "80"}
        return fork_command(*arguments, cwd=project, **environment).completed()

    return sluice


@pytest.fixture(scope="module")
def first(project):
    done = _launch("run", "digits", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def second(sluice, first):
    return sluice("run", "digits")


def test_the_first_run_pushes_a_model_that_reaches_its_target(first):
    assert (first["status"], first["exit_code"]) == ("succeeded", 0)
    assert set(_states(first).values()) == {"ran"}
    (push,) = first["pushes"]
    assert (push["state"], push["version"]) == ("pushed", 1)
    assert (Path(push["uri"]) / "saved_model.pb").is_file()
    gates = {gate["gate"]: gate for gate in first["gates"]}
    assert gates["data"]["passed"] and gates["model"]["passed"]
    row = gates["model"]["rows"][0]
    assert (row["check"], row["comparison"], row["limit"]) == ("accuracy", ">=", 0.97)
    assert row["actual"] >= 0.97


def _documents(project: Path, run: dict) -> dict[tuple[str, str], Any]:
    """Returns the documents of a run by kind and node."""
    run_dir = project / "workspace" / "digits" / "runs" / run["run_id"]
    return {
        (item["kind"], item["node"]): json.loads((run_dir / item["path"]).read_text())
        for item in run["documents"]
    }


def test_documents_of_the_record(project, first):
    import tensorflow as tf

    assert first["notes"] == []
    documents = _documents(project, first)
    assert set(documents) >= {
        ("samples", "TFRecordGen"),
        ("schema", "ImportSchemaGen"),
        ("anomalies", "ExampleValidator"),
        ("lineage", "Trainer"),
    }
    mistakes = documents["mistakes", "Evaluator"]
    right = 1 - mistakes["wrong"] / mistakes["examples"]
    overall = documents["metrics", "Evaluator"]["metrics"][0]
    metrics = {
        item["key"]["name"]: item["value"]["double_value"]
        for item in overall["metric_keys_and_values"]
        if "double_value" in item["value"]
    }
    assert mistakes["complete"]
    assert mistakes["examples"] == metrics["example_count"]
    assert right == pytest.approx(metrics["accuracy"])
    model = documents["model", "Trainer"]
    assert model["parameters"] >= model["trainable_parameters"] > 0
    served = tf.saved_model.load(first["pushes"][0]["uri"])
    assert {item["name"] for item in model["signatures"]} == set(served.signatures)
    lineage = documents["lineage", "Pusher"]
    assert lineage["artifact"]["name"] == "Pusher.pushed_model"
    assert [Path(item["path"]).name for item in lineage["origin"]["data"]] == ["digits"]
    assert [item["version"] for item in lineage["served"]] == [1]


def test_numbers_and_bars_of_the_page_are_those_of_the_records(project, first):
    """The confusion matrix has a row per class of the records of the test split."""
    html = Path(first["report_uri"]).read_text()
    count, wrong = wrong_bars(html, project / "data" / "digits")
    assert count == 30 and wrong == [] and len(html) < 1_000_000
    labels = Counter(
        label
        for shard in sorted((project / "data" / "digits").glob("test-*"))
        for label in _values(project, shard.name, "label")
    )
    tables = Page(html).tables
    rows = {row["Class"]: row["Examples"] for row in tables["classes"]}
    assert rows == {str(label): str(count) for label, count in labels.items()}
    mistakes = _documents(project, first)["mistakes", "Evaluator"]
    accuracy = next(x for x in tables["metrics-0"] if x["Metric"] == "accuracy")
    errors = f"{mistakes['wrong']} errors of {mistakes['examples']}"
    assert errors in accuracy["Value"]


@pytest.mark.usefixtures("first")
def test_predict_with_the_pushed_model(project, sluice):
    shard = "test-00000-of-00002.tfrecord"
    done = sluice("predict", "digits", f"data/digits/{shard}", "--limit", "20")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 20
    right = sum(
        row["label"] == str(label)
        for row, label in zip(rows, _values(project, shard, "label"), strict=False)
    )
    assert right >= 17
    assert sum(rows[0]["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)


def test_a_second_run_names_the_served_version(second):
    assert second.returncode == 0
    assert "already served as version 1" in second.stdout
    ran = [line.split()[0] for line in second.stdout.splitlines() if " done " in line]
    assert set(ran) <= MAY_RUN_AGAIN
    assert "model gate: passed" in second.stdout


@pytest.mark.usefixtures("second")
def test_an_up_to_date_run_imports_no_tfx(project):
    code = (
        "import sys\n"
        "from runners.cli.main import main\n"
        "try:\n"
        "    main(['run', 'digits', '--json'])\n"
        "finally:\n"
        "    heavy = {'tensorflow', 'tfx', 'apache_beam'} & set(sys.modules)\n"
        "    print(sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, "SLUICE_WORKSPACE": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
    document = json.loads(done.stdout)
    assert document["status"] == "up_to_date"
    assert set(_states(document).values()) == {"cached"}
    assert document["pushes"][0]["state"] == "already_served"
    run_dir = project / "workspace/digits/runs" / document["run_id"]
    assert not (run_dir / "logs").exists()


@pytest.mark.usefixtures("second")
def test_a_forced_node_runs_and_an_unknown_one_is_rejected(project, run_config):
    config, workspace = load_config("digits", cwd=project), locate(project, "digits")
    # Nothing reads what it makes, so nothing else has to run again.
    record = run_config(config, workspace, forced=["Pusher"])
    assert {"Pusher"} <= _ran(record) <= MAY_RUN_AGAIN | {"Pusher"}
    # The model is its own baseline, and described as the candidate nevertheless.
    record = run_config(config, workspace, forced=["Evaluator"])
    assert "mistakes" in {item.kind for item in record.documents}
    before = workspace.run_ids()
    with pytest.raises(UsageError, match="SchemaGen"):
        run_config(config, workspace, forced=["SchemaGen"])
    assert workspace.run_ids() == before


@pytest.mark.usefixtures("second")
def test_a_changed_threshold_runs_only_the_verdict(project, run_config):
    """The evaluation is cached, and the served model is not its own baseline."""
    workspace = locate(project, "digits")

    def judged(*thresholds: str):
        override = f"evaluate.thresholds=[{', '.join(thresholds)}]"
        config = load_config("digits", cwd=project, overrides=[override])
        return run_config(config, workspace)

    better = "change: {direction: higher_is_better, absolute: 0.001}"
    record = judged(
        "{metric: accuracy, lower_bound: 0.9, min_examples_per_class: 10}",
        f"{{metric: accuracy, {better}}}",
    )
    assert _ran(record) <= MAY_RUN_AGAIN | {"ModelVerdict", "Pusher"}
    assert record.pushes[0].state == "already_served"
    rows = record.gate_rows("model")
    assert [row.passed for row in rows] == [True, True]
    assert "this model is the latest blessed one itself" in rows[1].why

    # About 30 of each class are in the test split.
    record = judged("{metric: accuracy, lower_bound: 0.9, min_examples_per_class: 200}")
    assert record.exit_code == 4
    (row,) = record.gate_rows("model")
    assert row.why.startswith("only ") and "of class 9; 200 of each" in row.why


@pytest.fixture(scope="module")
def rejected(second, project, tmp_path_factory):
    """A run from another directory, whose model misses a limit."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "pipeline").mkdir()
    (folder / "pipeline" / "__init__.py").write_text("raise SystemExit('not ours')")
    return _launch(
        "run",
        str(project / "configs" / "digits.yaml"),
        "--set",
        "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.9999}]",
        "--json",
        cwd=folder,
    )


def test_exit_code_4_for_a_rejected_model_from_another_directory(project, rejected):
    done = rejected
    assert done.returncode == 4, done.stderr
    document = json.loads(done.stdout)
    states = document["status"], document["pushes"][0]["state"]
    assert states == ("blocked", "blocked")
    assert "FAIL" in done.stderr
    assert (project / "workspace/digits/runs" / document["run_id"]).is_dir()


@pytest.mark.usefixtures("second")
def test_fewer_epochs_train_again_and_are_compared_with_the_baseline(
    project, run_config
):
    config = load_config("digits", cwd=project)
    workspace = locate(project, "digits")
    third = run_config(config, workspace)

    shorter = load_config("digits", cwd=project, overrides=["train.epochs=6"])
    record = run_config(shorter, workspace)
    assert _ran(record) == {
        "Trainer",
        "Evaluator",
        "ModelVerdict",
        "ServingCheck",
        "Pusher",
    }
    row = record.gate_rows("model")[0]
    assert row.baseline == pytest.approx(third.gate_rows("model")[0].actual)
    assert record.pushes[0].state in ("pushed", "blocked")
    assert (record.exit_code == 0) == all(x.passed for x in record.gates)
    # Both models' predictions, counted one by one, have the accuracies of TFMA.
    mistakes = _documents(project, record.to_dict())["mistakes", "Evaluator"]
    flips, examples = mistakes["flips"], mistakes["examples"]
    right = flips["both_right"] + flips["newly_right"]
    assert right / examples == pytest.approx(row.actual)
    right = flips["both_right"] + flips["newly_wrong"]
    assert right / examples == pytest.approx(row.baseline)


def _values(project: Path, shards: str, feature: str) -> list[Any]:
    """Returns the first value of a feature in each record of some shards."""
    return [
        values_of(parse(record).features.feature[feature])[0]
        for shard in sorted((project / "data" / "digits").glob(shards))
        for record in tfrecord.read(shard)
    ]


@pytest.mark.browser
@pytest.mark.usefixtures("second")
def test_a_private_run_shows_no_record_and_no_image(project, run_config, report_pages):
    """Nothing else has changed since a run whose record has images."""
    workspace = locate(project, "digits")
    config = load_config("digits", cwd=project, overrides=["private=true"])
    record = run_config(config, workspace)
    assert record.exit_code == 0
    run_dir = workspace.run_dir(record.run_id)
    documents = _documents(project, record.to_dict())
    samples = documents["samples", "TFRecordGen"]
    assert samples["privacy"]["private"] and samples["features"] == []
    mistakes = documents["mistakes", "Evaluator"]
    assert mistakes["privacy"]["private"] and mistakes["mistakes"] == []
    assert mistakes["wrong"] > 0

    report = run_dir / "report.html"
    written = [run_dir / item.path for item in record.documents]
    texts = [path.read_text() for path in (report, run_dir / "run.json", *written)]
    # An icon of the page's own is an image too, but not in this encoding.
    assert not [text for text in texts if ";base64," in text]
    images = [
        base64.b64encode(image).decode()
        for image in _values(project, "*.tfrecord", "image")
    ]
    assert not [image for image in images if any(image in text for text in texts)]

    report_pages.check(report)
    with report_pages.open(report) as page:
        assert page.locator("img").count() == 0
        matrix = page.locator("#model .matrix").first
        assert matrix.locator("tbody tr").count() == 10
        assert page.get_by_text("Version 1", exact=True).first.is_visible()
