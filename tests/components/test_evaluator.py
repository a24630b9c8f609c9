"""Evaluator: reuse of the baseline's metrics from an earlier evaluation."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.evaluation import OVERALL, read_metrics
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


@pytest.fixture
def place(evaluations: Any, tmp_path: Path) -> Any:
    metrics = ("AUC", "BinaryAccuracy", "MeanPrediction", "ExampleCount")
    return evaluations(tmp_path / "place", 2, metrics)


@pytest.fixture
def three_classes(evaluations: Any, tmp_path: Path) -> Any:
    metrics = ("SparseCategoricalAccuracy", "ExampleCount")
    return evaluations(tmp_path / "three", 3, metrics)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that TFMA has loaded to evaluate them."""
    import tensorflow_model_analysis as tfma

    names: list[str] = []
    load = tfma.default_eval_shared_model

    def spy(eval_saved_model_path: str, **options: Any) -> Any:
        names.append(Path(eval_saved_model_path).parent.name)
        return load(eval_saved_model_path, **options)

    monkeypatch.setattr(tfma, "default_eval_shared_model", spy)
    return names


def _records(seed: int) -> list[dict[str, Any]]:
    source = random.Random(seed)
    regions = [b"north", b"south"]
    return [
        {
            "x": source.uniform(-1, 1),
            "region": source.choice(regions),
            "label": source.randrange(2),
        }
        for _ in range(60)
    ]


def _document(evaluation: Path, number: Callable[[Any], Any] = float) -> Any:
    """Returns metrics and plots in one order, each number as ``number`` returns it."""
    from runners.documents.protos import metrics

    def key(item: Any) -> str:
        named = isinstance(item, dict) and (item.get("key") or item.get("slice_key"))
        return json.dumps(named, sort_keys=True) if named else ""

    def converted(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: converted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [converted(item) for item in sorted(value, key=key)]
        return number(value) if isinstance(value, float) else value

    return converted(metrics(evaluation))


def _described(evaluation: Path) -> Any:
    from tensorflow_model_analysis.writers.eval_config_writer import load_eval_run

    return load_eval_run(str(evaluation))


def test_an_earlier_candidate_is_not_evaluated_again_as_baseline(place, loaded):
    from components.model_verdict.read_evaluation import read_candidate, read_evaluation

    examples = place.write_examples("examples", _records(1))
    old, new = place.write_model("old", 1.0), place.write_model("new", -2.0)
    before = place.evaluate(examples, old)
    assert loaded == ["old"]
    after = place.evaluate(examples, new, old)
    assert loaded == ["old", "new"]
    stock = place.evaluate(examples, new, old, stock=True)
    assert loaded == ["old", "new", "new", "old"]

    assert _document(after) == _document(stock, pytest.approx)
    assert _described(after) == _described(stock)
    names = place.class_names
    baseline = read_evaluation(str(after), "baseline", names)
    assert baseline == read_candidate(str(before), names)
    candidate = read_candidate(str(after), names)
    for key, metrics in read_candidate(str(stock), names).metrics.items():
        assert candidate.metrics[key] == pytest.approx(metrics)
    assert candidate.metrics[()]["auc"] != baseline.metrics[()]["auc"]
    assert candidate.examples_per_class == baseline.examples_per_class


def test_plots_of_the_baseline_are_copied_too(three_classes, loaded):
    place = three_classes
    examples = place.write_examples("examples", _records(1))
    old, new = place.write_model("old", 1.0), place.write_model("new", -2.0)
    place.evaluate(examples, old)
    after = place.evaluate(examples, new, old)
    assert loaded == ["old", "new"]
    stock = place.evaluate(examples, new, old, stock=True)

    assert _document(after) == _document(stock, pytest.approx)
    (overall,) = _document(after)["plots"]
    models = [plot["key"]["model_name"] for plot in overall["plot_keys_and_values"]]
    assert models == ["baseline", "candidate"]


def test_an_earlier_baseline_is_not_evaluated_again(place, loaded):
    examples = [place.write_examples(f"data{seed}", _records(seed)) for seed in (1, 2)]
    old, *new = [place.write_model(name, i) for i, name in enumerate(("old", "b", "c"))]
    place.evaluate(examples[0], old)
    place.evaluate(examples[1], new[0], old)
    assert loaded == ["old", "b", "old"], "the data is another"
    after = place.evaluate(examples[1], new[1], old)
    assert loaded == ["old", "b", "old", "c"]
    evaluated = json.loads((after / "evaluated.json").read_text())
    assert evaluated["baseline_from"] == str(after.parent / "2")
    stock = place.evaluate(examples[1], new[1], old, stock=True)
    assert _document(after) == _document(stock, pytest.approx)


def test_a_model_that_is_its_own_baseline_is_evaluated_once(place, loaded):
    examples = place.write_examples("examples", _records(1))
    model = place.write_model("model", 1.0)
    after = place.evaluate(examples, model, model)
    assert loaded == ["model"]
    stock = place.evaluate(examples, model, model, stock=True)
    assert _document(after) == _document(stock, pytest.approx)
    assert _described(after) == _described(stock)


def test_a_metric_with_an_interval_has_the_same_value_for_the_gate(
    place, evaluations, tmp_path
):
    from components.model_verdict.read_evaluation import read_candidate

    examples = place.write_examples("examples", _records(1))
    old, new = place.write_model("old", 1.0), place.write_model("new", -2.0)
    plain = read_candidate(str(place.evaluate(examples, new)), place.class_names)
    bounded = evaluations(tmp_path / "bounded", 2, place.metrics, intervals=True)
    evaluation = bounded.evaluate(examples, new, old)

    found = read_candidate(str(evaluation), place.class_names)
    assert found.examples_per_class == plain.examples_per_class
    for key, metrics in plain.metrics.items():
        values = {name: found.metrics[key][name] for name in metrics}
        assert values == pytest.approx(metrics)
    rows = [row for row in read_metrics(_document(evaluation)) if row.name == "auc"]
    overall = [row for row in rows if row.slice == OVERALL]
    assert {row.model for row in overall} == {"baseline", "candidate"}
    for row in overall:
        assert row.bounds is not None and row.value is not None
        assert row.bounds[0] < row.value < row.bounds[1]


_CHANGE = {"change_threshold": {"absolute": 0, "direction": "HIGHER_IS_BETTER"}}


def _configured(place: Any, change: Callable[[Any], None]) -> dict[str, Any]:
    """Returns the exec properties with another EvalConfig, changed in its JSON form."""
    properties = place.properties()
    config = json.loads(properties["eval_config"])
    change(config)
    return {**properties, "eval_config": json.dumps(config)}


def test_both_models_are_evaluated_if_tfma_checks_thresholds(
    place, loaded, monkeypatch
):
    """Without one it drops the thresholds for changes, and blesses whatever comes."""

    def limit(config: Any) -> None:
        config["metricsSpecs"][0]["metrics"][0]["threshold"] = _CHANGE

    properties = _configured(place, limit)
    monkeypatch.setattr(place, "properties", lambda: properties)
    examples = place.write_examples(
        "examples",
        [
            {"x": x / 10, "region": b"north", "label": int(x > 0)}
            for x in range(-30, 30)
        ],
    )
    good, bad = place.write_model("good", 1.0), place.write_model("bad", -1.0)
    place.evaluate(examples, good)
    after = place.evaluate(examples, bad, good)
    assert loaded == ["good", "bad", "good"]
    (blessing,) = (place.folder / "blessing" / after.name).iterdir()
    assert blessing.name == "NOT_BLESSED"


@pytest.mark.parametrize(
    "change",
    [
        lambda config: config["metricsSpecs"][0]["metrics"][0].update(
            threshold={"value_threshold": {"lower_bound": 0.5}}
        ),
        lambda config: config["metricsSpecs"][0]["metrics"][0].update(
            per_slice_thresholds=[{"slicing_specs": [{}], "threshold": _CHANGE}]
        ),
        lambda config: config["metricsSpecs"][0].update(thresholds={"auc": _CHANGE}),
        lambda config: config["metricsSpecs"][0]["metrics"].append(
            {"class_name": "SymmetricFlipRate"}
        ),
        lambda config: config["modelSpecs"][0].update(name="mine"),
        lambda config: config["modelSpecs"].append({"is_baseline": True}),
        lambda config: config.update(options={"compute_confidence_intervals": True}),
        lambda config: config.update(cross_slicing_specs=[{"baseline_spec": {}}]),
        lambda config: config.clear(),
    ],
)
def test_a_baseline_is_added_to_metrics_alone(place, change):
    from components.evaluator.add_baseline import can_add_baseline

    assert can_add_baseline(place.properties())
    assert not can_add_baseline(_configured(place, change))


@pytest.mark.parametrize("name", ["module_file", "module_path"])
def test_user_code_evaluates_both_models(place, name):
    from components.evaluator.add_baseline import can_add_baseline

    assert not can_add_baseline({**place.properties(), name: "mine"})


def test_predictions_without_a_model_are_evaluated_as_tfx_does(place):
    from components.evaluator.evaluation_digests import digest_inputs

    examples = place.write_examples("examples", _records(1))
    inputs = place.inputs(examples, place.folder / "model")
    del inputs["model"]
    assert digest_inputs(inputs, place.properties()) is None


def _touch_model(place: Any) -> None:
    (place.folder / "old" / "Format-Serving" / "more").write_text("changed")


def _other_examples(place: Any) -> None:
    split = place.folder / "examples" / "Split-test"
    (path,) = split.iterdir()
    tfrecord.write(path, list(tfrecord.read(path))[:-1])


def _damage_metrics(place: Any) -> None:
    (path,) = (place.folder / "evaluation" / "1").glob("metrics*")
    path.write_bytes(path.read_bytes()[:-1])


def _unfinished(place: Any) -> None:
    (place.folder / "evaluation" / "1" / "evaluated.json").unlink()


def _overwritten(place: Any) -> None:
    (place.folder / "evaluation" / "1" / "evaluated.json").write_text("[]")


def _other_schema(place: Any) -> None:
    path = place.folder / "schema" / "schema.pbtxt"
    path.write_text(path.read_text() + "# changed")


@pytest.mark.parametrize(
    "change",
    [
        _touch_model,
        _other_examples,
        _damage_metrics,
        _unfinished,
        _overwritten,
        _other_schema,
        lambda place: setattr(place, "slices", ()),
        lambda place: setattr(place, "metrics", ("AUC",)),
    ],
)
def test_metrics_of_other_data_or_models_are_not_reused(place, change):
    from components.evaluator.evaluation_digests import (
        EvaluationDigests,
        digest_inputs,
        find_reusable,
    )

    for name, text in (("old", "1"), ("new", "2")):
        (place.folder / name / "Format-Serving").mkdir(parents=True)
        (place.folder / name / "Format-Serving" / "saved_model.pb").write_text(text)
    examples = place.write_examples("examples", _records(1))
    earlier, later = (place.folder / "evaluation" / name for name in ("1", "2"))
    earlier.mkdir(parents=True)
    tfrecord.write(earlier / "metrics-00000-of-00001.tfrecord", [b"metrics"])
    old, new = place.folder / "old", place.folder / "new"

    def evaluated(*models: Path) -> EvaluationDigests:
        inputs = place.inputs(examples, *models)
        found = digest_inputs(inputs, place.properties())
        assert found is not None
        return found

    def found() -> Any:
        return find_reusable(later, evaluated(new, old))

    assert found() is None
    evaluated(old).save(earlier)
    assert found() == (earlier, "candidate")
    train = examples / "Split-train"
    train.mkdir()
    (train / "data").write_text("no part of what is evaluated")
    assert found() == (earlier, "candidate")
    change(place)
    assert found() is None


def test_remote_artifacts_are_evaluated_by_tfx(place):
    from components.evaluator.evaluation_digests import digest_inputs

    inputs = place.inputs(Path("examples"), Path("model"))
    inputs["model"][0].uri = "gs://bucket/model"
    assert digest_inputs(inputs, place.properties()) is None
