"""The digits pipeline on real images, as a user runs it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from sluice.errors import UsageError
from sluice.project import own_root
from sluice.workspace import locate

pytestmark = pytest.mark.e2e

Sluice = Callable[..., subprocess.CompletedProcess[str]]
MAY_RUN_AGAIN = {"LatestBlessedModel", "Evaluator"}


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


@pytest.fixture(scope="module")
def sluice(
    fork_command: Callable[..., Any], project: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``sluice`` in the project, in a fork of a process that has imported TFX."""

    def sluice(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"SLUICE_WORKSPACE": "", "COLUMNS": "80"}
        return fork_command(*arguments, cwd=project, **environment).completed()

    return sluice


@pytest.fixture(scope="module")
def first(project: Path) -> dict:
    done = _launch("run", "digits", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def second(sluice: Sluice, first: dict) -> subprocess.CompletedProcess[str]:
    return sluice("run", "digits")


def test_the_first_run_pushes_a_model_that_reaches_its_target(first: dict) -> None:
    assert (first["status"], first["exit_code"]) == ("succeeded", 0)
    assert set(_states(first).values()) == {"ran"}
    (push,) = first["pushes"]
    assert (push["state"], push["version"]) == ("pushed", 1)
    assert (Path(push["uri"]) / "saved_model.pb").is_file()
    gates = {gate["gate"]: gate for gate in first["gates"]}
    assert gates["data"]["passed"] and gates["model"]["passed"]
    row = gates["model"]["rows"][0]
    assert (row["check"], row["limit"]) == ("accuracy", ">= 0.97")
    assert row["actual"] >= 0.97


def test_files_of_the_workspace(project: Path, first: dict) -> None:
    root = project / "workspace" / "digits"
    run_dir = root / "runs" / first["run_id"]
    logs = {path.stem for path in (run_dir / "logs").iterdir()}
    assert {node["id"] for node in first["nodes"]} <= logs
    assert json.loads((run_dir / "run.json").read_text()) == first
    names = os.listdir(root / "serving")
    assert all(name.isdigit() or name.startswith(".") for name in names)
    schema = list((root / "inputs" / "schema").rglob("schema.pbtxt"))
    assert len(schema) == 1


def _documents(project: Path, run: dict) -> dict[tuple[str, str], Any]:
    """Returns what each document of a run says of its first artifact."""
    run_dir = project / "workspace" / "digits" / "runs" / run["run_id"]
    found = {}
    for item in run["documents"]:
        document = json.loads((run_dir / item["path"]).read_text())
        found[item["kind"], item["node"]] = document["artifacts"][0]
    return found


def test_documents_of_the_record(project: Path, first: dict) -> None:
    import tensorflow as tf

    assert first["notes"] == []
    documents = _documents(project, first)
    assert set(documents) >= {
        ("samples", "TFRecordGen"),
        ("schema", "ImportSchemaGen"),
        ("anomalies", "ExampleValidator"),
        ("model", "Trainer"),
        ("lineage", "Trainer"),
        ("mistakes", "Evaluator"),
        ("lineage", "Pusher"),
    }
    mistakes = documents["mistakes", "Evaluator"]
    right = 1 - mistakes["wrong"] / mistakes["examples"]
    metrics = documents["metrics", "Evaluator"]["metrics"][0]["metrics"]
    assert mistakes["complete"]
    assert mistakes["examples"] == metrics["example_count"]
    assert right == pytest.approx(metrics["accuracy"])
    # Each example request is one that the served model takes.
    model = documents["model", "Trainer"]
    parameters = sum(layer["parameters"] for layer in model["layers"])
    assert parameters == model["parameters"]
    served = tf.saved_model.load(first["pushes"][0]["uri"])
    assert {item["name"] for item in model["signatures"]} == set(served.signatures)
    for signature in model["signatures"]:
        (row,) = signature["example_request"]["instances"]
        given = {
            name: tf.constant([base64.b64decode(value["b64"])])
            for name, value in row.items()
        }
        returned = served.signatures[signature["name"]](**given)
        assert set(returned) == {item["name"] for item in signature["outputs"]}
    (gate,) = [item for item in first["gates"] if item["gate"] == "data"]
    assert gate["passed"]
    lineage = documents["lineage", "Pusher"]
    assert lineage["artifact"]["name"] == "Pusher.pushed_model"
    assert [Path(item["path"]).name for item in lineage["origin"]["data"]] == ["digits"]
    assert [item["version"] for item in lineage["served"]] == [1]


@pytest.mark.usefixtures("second")
def test_cached_nodes_take_the_costly_documents_of_an_earlier_run(
    project: Path, first: dict
) -> None:
    newest = max((project / "workspace" / "digits" / "runs").glob("*/run.json"))
    last = json.loads(newest.read_text())
    assert last["run_id"] != first["run_id"]
    before, now = (
        {(item["kind"], item["node"]): item["digest"] for item in run["documents"]}
        for run in (first, last)
    )
    for key in (("samples", "TFRecordGen"), ("model", "Trainer")):
        assert now[key] == before[key]


@pytest.mark.browser
def test_the_page_of_a_pushed_model(first: dict, report_pages: Any) -> None:
    report = Path(first["report_uri"])
    report_pages.check(report)
    with report_pages.open(report) as page:
        assert page.get_by_text("Version 1 was pushed").is_visible()
        classes = page.locator("#data .gallery > div")
        assert classes.count() == 10
        assert classes.locator("img").count() == 80
        matrix = page.locator("#model .matrix tbody tr")
        assert matrix.count() == 10
        assert page.locator("#training svg[role=img]").count() >= 2


@pytest.mark.usefixtures("first")
def test_predict_with_the_pushed_model(project: Path, sluice: Sluice) -> None:
    shard = "data/digits/test-00000-of-00002.tfrecord"
    done = sluice("predict", "digits", shard, "--limit", "20")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 20
    right = sum(
        row["label"] == str(label)
        for row, label in zip(rows, _labels(project), strict=False)
    )
    assert right >= 17
    assert sum(rows[0]["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)


def test_a_second_run_names_the_served_version(
    second: subprocess.CompletedProcess[str],
) -> None:
    assert second.returncode == 0
    assert "already served as version 1" in second.stdout
    ran = [line.split()[0] for line in second.stdout.splitlines() if " done " in line]
    assert set(ran) <= MAY_RUN_AGAIN
    assert "model gate: passed" in second.stdout


@pytest.mark.usefixtures("second")
def test_an_up_to_date_run_imports_no_tfx(project: Path) -> None:
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
def test_explain_names_what_has_changed_and_changes_nothing(
    project: Path, sluice: Sluice
) -> None:
    arguments = ("explain", "digits", "Evaluator", "--set", "train.epochs=7")
    before = sorted((project / "workspace").rglob("*"))
    done = sluice(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    answers = {item["node"]: item for item in json.loads(done.stdout)["nodes"]}
    assert answers["Trainer"]["because"] == ["property train.epochs: 30 -> 7"]
    assert answers["Evaluator"]["waits_for"] == ["Trainer"]
    assert not answers["Transform"]["would_run"]
    assert "Pusher" not in answers
    assert sorted((project / "workspace").rglob("*")) == before


@pytest.mark.usefixtures("second")
def test_a_part_of_the_graph_reads_outputs_of_an_earlier_run(
    project: Path, run_config, first: dict
) -> None:
    config, workspace = load_config("digits", cwd=project), locate(project, "digits")
    record = run_config(
        config,
        workspace,
        from_nodes=("Evaluator",),
        to_nodes=("ModelVerdict",),
        use_cache=False,
    )
    states = {node.id: node.state for node in record.nodes}
    ran = {name for name, state in states.items() if state == "ran"}
    assert ran - {"LatestBlessedModel"} == {"Evaluator", "ModelVerdict"}
    assert states["Trainer"] == "cached" and states["Pusher"] == "skipped"
    assert "taken from run" in (record.node("Trainer").reason or "")
    # The baseline may not be the latest any more.
    assert "taken from" not in (record.node("LatestBlessedModel").reason or "")
    model = [node["outputs"] for node in first["nodes"] if node["id"] == "Trainer"]
    # The model is the baseline too here, and ML Metadata has it under one name only.
    read = record.node("Evaluator").inputs.values()
    assert model[0]["model"] in read


@pytest.mark.usefixtures("second")
def test_a_forced_node_runs_and_an_unknown_one_is_rejected(
    project: Path, run_config
) -> None:
    config, workspace = load_config("digits", cwd=project), locate(project, "digits")
    # Nothing reads what it makes, so nothing else has to run again.
    record = run_config(config, workspace, forced=("Pusher",))
    ran = {node.id for node in record.nodes if node.state == "ran"}
    assert "Pusher" in ran and ran <= MAY_RUN_AGAIN | {"Pusher"}
    # The model is its own baseline, and described as the candidate nevertheless.
    record = run_config(config, workspace, forced=("Evaluator",))
    assert "mistakes" in {item.kind for item in record.documents}
    before = workspace.run_ids()
    with pytest.raises(UsageError, match="SchemaGen"):
        run_config(config, workspace, forced=("SchemaGen",))
    assert workspace.run_ids() == before


@pytest.mark.usefixtures("second")
def test_a_deleted_version_is_pushed_again(project: Path, run_config) -> None:
    workspace = locate(project, "digits")
    shutil.rmtree(workspace.serving)
    record = run_config(load_config("digits", cwd=project), workspace)
    ran = {node.id for node in record.nodes if node.state == "ran"}
    assert "Pusher" in ran and ran <= MAY_RUN_AGAIN | {"Pusher"}
    assert record.pushes[0].state == "pushed"
    assert (workspace.serving / "1" / "saved_model.pb").is_file()


@pytest.mark.usefixtures("second")
def test_a_changed_threshold_runs_only_the_verdict(project: Path, run_config) -> None:
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
    ran = {node.id for node in record.nodes if node.state == "ran"}
    assert ran <= {"ModelVerdict", "Pusher"}
    assert record.pushes[0].state == "already_served"
    rows = record.gates[-1]["rows"]
    assert [row["passed"] for row in rows] == [True, True]
    assert "this model is the latest blessed one itself" in rows[1]["why"]

    # About 30 of each class are in the test split.
    record = judged("{metric: accuracy, lower_bound: 0.9, min_examples_per_class: 200}")
    assert record.exit_code == 4
    (row,) = record.gates[-1]["rows"]
    assert row["why"].startswith("only ") and "of class 9; 200 of each" in row["why"]


@pytest.fixture(scope="module")
def rejected(
    second: subprocess.CompletedProcess[str],
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> subprocess.CompletedProcess[str]:
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


def test_exit_code_4_for_a_rejected_model_from_another_directory(
    project: Path, rejected: subprocess.CompletedProcess[str]
) -> None:
    done = rejected
    assert done.returncode == 4, done.stderr
    document = json.loads(done.stdout)
    assert (document["status"], document["pushes"][0]["state"]) == (
        "blocked",
        "blocked",
    )
    assert "FAIL" in done.stderr
    assert (project / "workspace/digits/runs" / document["run_id"]).is_dir()


@pytest.mark.browser
def test_the_page_of_a_rejected_model(
    rejected: subprocess.CompletedProcess[str], report_pages: Any
) -> None:
    report = Path(json.loads(rejected.stdout)["report_uri"])
    # The first run, or that of the test which deletes the served version.
    earlier = [
        json.loads(path.read_text())
        for path in sorted(report.parents[1].glob("*/run.json"))
        if path.parent < report.parent
    ]
    last = [
        run for run in earlier if "pushed" in [push["state"] for push in run["pushes"]]
    ][-1]
    report_pages.check(report)
    with report_pages.open(report) as page:
        banner = page.locator("#verdict .banner").first
        assert "Not pushed: the model gate stopped the run" in banner.inner_text()
        assert "limit ≥ 0.9999" in banner.inner_text()
        changed = page.locator("#verdict").get_by_role("link", name=last["run_id"])
        assert changed.get_attribute("href") == f"../{last['run_id']}/report.html"
        compared = changed.locator("xpath=..").inner_text()
        assert compared.endswith("which pushed version 1.")
        facts = page.locator("#verdict dl").last.inner_text()
        assert "config\nevaluate.thresholds" in facts and "0.9999" in facts


@pytest.mark.usefixtures("second")
def test_fewer_epochs_train_again_and_reuse_the_evaluation_of_the_baseline(
    project: Path, run_config
) -> None:
    config = load_config("digits", cwd=project)
    workspace = locate(project, "digits")
    third = run_config(config, workspace)

    shorter = load_config("digits", cwd=project, overrides=["train.epochs=6"])
    record = run_config(shorter, workspace)
    ran = {node.id for node in record.nodes if node.state in ("ran", "blocked")}
    assert ran == {"Trainer", "Evaluator", "ModelVerdict", "Pusher"}
    row = record.gates[-1]["rows"][0]
    assert row["baseline"] == pytest.approx(third.gates[-1]["rows"][0]["actual"])
    evaluations = (workspace.artifacts / "Evaluator" / "evaluation").iterdir()
    newest = max(evaluations, key=lambda path: int(path.name))
    evaluated = json.loads((newest / "evaluated.json").read_text())
    assert evaluated["models"].keys() == {"candidate", "baseline"}
    assert evaluated["baseline_from"], "the baseline was evaluated again"
    assert record.pushes[0].state in ("pushed", "blocked")
    assert (record.exit_code == 0) == record.gates[-1]["passed"]


def _labels(project: Path) -> list[int]:
    """Returns the labels of the first test shard."""
    import tensorflow as tf

    from sluice.tfrecords import tfrecord

    shard = project / "data" / "digits" / "test-00000-of-00002.tfrecord"
    return [
        tf.train.Example.FromString(record)
        .features.feature["label"]
        .int64_list.value[0]
        for record in tfrecord.read(shard)
    ]


@pytest.mark.browser
@pytest.mark.usefixtures("second")
def test_a_private_run_shows_no_record_and_no_image(
    project: Path, run_config, report_pages: Any
) -> None:
    """Nothing else has changed since a run whose record has images."""
    workspace = locate(project, "digits")
    config = load_config("digits", cwd=project, overrides=["private=true"])
    record = run_config(config, workspace)
    assert record.exit_code == 0
    run_dir = workspace.run_dir(record.run_id)
    documents = _documents(project, record.to_dict())
    samples = documents["samples", "TFRecordGen"]
    assert samples["private"] and samples["features"] == []
    mistakes = documents["mistakes", "Evaluator"]
    assert mistakes["private"] and mistakes["mistakes"] == []
    assert mistakes["wrong"] > 0

    report = run_dir / "report.html"
    written = [report, run_dir / "run.json", *(run_dir / "record").iterdir()]
    texts = [path.read_text() for path in written]
    assert not [text for text in texts if "data:image" in text]
    images = [base64.b64encode(image).decode() for image in _images(project)]
    assert not [image for image in images if any(image in text for text in texts)]

    report_pages.check(report)
    with report_pages.open(report) as page:
        assert page.locator("img").count() == 0
        assert page.locator("#model .matrix tbody tr").count() == 10
        assert page.get_by_text("Version 1", exact=True).first.is_visible()


def _images(project: Path) -> list[bytes]:
    """Returns the images of all records."""
    import tensorflow as tf

    from sluice.tfrecords import tfrecord

    return [
        tf.train.Example.FromString(record)
        .features.feature["image"]
        .bytes_list.value[0]
        for shard in (project / "data" / "digits").glob("*.tfrecord")
        for record in tfrecord.read(shard)
    ]
