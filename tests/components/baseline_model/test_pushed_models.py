"""The baseline of cloud services: looked up by a task in the model store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from components.baseline_model.blessed_models import (
    LOOK_UP,
    NO_BASELINE,
    find_baseline,
    pin_baseline,
)
from components.model_verdict.settings import Change, Settings, Threshold
from serving.model_store import store_at


def _push(tmp_path: Path, name: str) -> str:
    """Publishes a model and returns the URI of the trained one."""
    model = tmp_path / "models" / name
    serving = model / "Format-Serving"
    serving.mkdir(parents=True)
    (serving / "saved_model.pb").write_text(name)
    store = store_at(tmp_path / "serving")
    store.publish(serving, facts={"model_uri": str(model)})
    return str(model)


@pytest.mark.unit
def test_the_model_that_was_pushed_last_is_the_baseline(tmp_path):
    serving = str(tmp_path / "serving")
    assert pin_baseline(serving) == NO_BASELINE
    assert find_baseline(serving, LOOK_UP) == ([], [])
    first, second = _push(tmp_path, "first"), _push(tmp_path, "second")
    assert pin_baseline(serving) == "2"
    assert find_baseline(serving, LOOK_UP) == ([second], [])
    assert find_baseline(serving, LOOK_UP, 5) == ([second, first], [])
    # A pinned run does not see a later push.
    assert find_baseline(serving, "1") == ([first], [])
    assert find_baseline(serving, NO_BASELINE) == ([], [])


@pytest.mark.unit
def test_a_missing_model_is_skipped_and_named(tmp_path):
    """Found: TFX's resolver selects it, and the Evaluator fails at loading it."""
    serving = str(tmp_path / "serving")
    first, second = _push(tmp_path, "first"), _push(tmp_path, "second")
    shutil.rmtree(second)
    found, skipped = find_baseline(serving, LOOK_UP)
    assert found == [first]
    assert skipped == [("version 2", f"missing: nothing is at {second}")]
    shutil.rmtree(first)
    found, skipped = find_baseline(serving, "2")
    assert not found and [name for name, _ in skipped] == ["version 2", "version 1"]


def _run(
    tmp_path: Path, executor: str, inputs: dict[str, Any], titles: dict[str, str]
) -> dict[str, Any]:
    """Runs an executor by TFX's entry point; returns the artifacts that it reports."""
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    outputs = {}
    for key, title in titles.items():
        (tmp_path / key).mkdir()
        one = {"name": f"a/{key}", "uri": str(tmp_path / key)}
        outputs[key] = {"artifacts": [{**one, "type": {"schemaTitle": title}}]}
    file = tmp_path / "output.json"
    file.unlink(missing_ok=True)
    invocation = {
        "inputs": inputs,
        "outputs": {"artifacts": outputs, "outputFile": str(file)},
    }
    strings = {
        key: {"parameterType": "STRING" if isinstance(value, str) else "NUMBER_INTEGER"}
        for key, value in inputs["parameterValues"].items()
    }
    arguments = [
        *("--executor_class_path", executor),
        *("--json_serialized_invocation_args", json.dumps(invocation)),
        "--json_serialized_inputs_spec_args",
        json.dumps({"parameters": strings}),
    ]
    kubeflow_v2_run_executor.main(kubeflow_v2_run_executor._parse_flags(arguments))
    reported = json.loads(file.read_text())["artifacts"]
    return {key: reported[key]["artifacts"][0] for key in titles}


def _look_up(tmp_path: Path) -> dict[str, Any]:
    values: dict[str, Any] = {"baseline": LOOK_UP, "count": 1}
    values["serving_dir"] = str(tmp_path / "serving")
    executor = "components.baseline_model.component.LatestBlessedModel_Executor"
    titles = {"model": "tfx.Model"}
    inputs = {"parameterValues": values}
    return _run(tmp_path, executor, inputs, titles)["model"]


@pytest.mark.tf
def test_a_change_against_a_lost_baseline_fails_the_gate(evaluations, tmp_path):
    """As locally, and the Evaluator evaluates without it."""
    shutil.rmtree(_push(tmp_path, "lost"))
    absent = _look_up(tmp_path)
    assert absent["metadata"]["sluice_absent"] == "true"

    place = evaluations(tmp_path / "place", 2)
    examples = place.write_examples("data", [{"x": 1.0, "region": b"n", "label": 1}])
    model = place.write_model("a", 1)
    evaluation = place.evaluate(examples, model)

    def listed(one: dict[str, Any], title: str = "tfx.Model") -> dict[str, Any]:
        return {"artifacts": [{**one, "type": {"schemaTitle": title}}]}

    evaluated = {"name": "a/evaluation", "uri": str(evaluation)}
    artifacts = {
        "evaluation": listed(evaluated, "tfx.ModelEvaluation"),
        "model": listed({"name": "a/candidate", "uri": str(model)}),
        "baseline_model": listed(absent),
    }
    change = Change(direction="higher_is_better", absolute=-0.1)
    settings = Settings(
        thresholds=(Threshold(metric="example_count", change=change),),
        classes=tuple(place.class_names),
        split="test",
    )
    values = {"settings": settings.model_dump_json()}
    titles = {"verdict": "components.ModelVerdict", "blessing": "tfx.ModelBlessing"}
    inputs = {"artifacts": artifacts, "parameterValues": values}
    executor = "components.model_verdict.component.Executor"
    blessing = _run(tmp_path, executor, inputs, titles)["blessing"]
    assert blessing["metadata"]["blessed"] == 0
    # Found: a hashed number, so that round two said "no baseline yet". The resolver's
    # filter is name="<current_model_id of the blessing>".
    assert blessing["metadata"]["current_model_id"] == "a/candidate"
    verdict = json.loads((tmp_path / "verdict" / "verdict.json").read_text())
    whys = " ".join(row["why"] for row in verdict["rows"])
    assert "version 1 is missing: " in whys
    assert "the baseline is lost" in whys
    assert "leave the thresholds with change out" in whys
