"""TFMA's config of the Evaluator, from the sections ``evaluate`` and ``label``."""

from __future__ import annotations

import json
from typing import Any

from pipeline.config.evaluate import Evaluate
from pipeline.config.label import Label
from sluice.metrics import result_name


def eval_config(
    evaluate: Evaluate, label: Label, sample_weight: str | None = None
) -> Any:
    """Returns a ``tfma.EvalConfig`` with a candidate and a baseline model.

    All but counts of examples are weighted by the feature ``sample_weight``, which is
    read from the records: a model that was trained without it is weighted alike.

    It has metrics and slices, the examples per class, and what the report draws of one
    class per example: the histogram of predictions and the confusion matrix. The model
    verdict applies the thresholds, see docs/adr/0001-model-verdict.md.
    """
    from google.protobuf import json_format
    from tensorflow_model_analysis.proto import config_pb2

    from components import counting_metrics, estimates, regression_metrics

    classes, key = len(label.class_names), label.prediction_key
    is_one, targets = label.task == "classification", label.targets or ()
    is_regression = label.task == "regression"
    counts = [counting_metrics.EXAMPLES_PER_CLASS] if classes else []
    counts += [counting_metrics.PREDICTION_HISTOGRAM] if is_one else []
    named = {x.class_name for x in evaluate.metrics}
    if is_one and "MultiClassConfusionMatrixPlot" not in named:
        counts.append(counting_metrics.CONFUSION_MATRIX)
    counts += [counting_metrics.EFFECTIVE_EXAMPLES] if sample_weight else []
    of_label = {"classes": classes, "prediction_key": key if is_one else None}
    make = counting_metrics.metric_config
    drawn = [make(counting_metrics.Count, name=name, **of_label) for name in counts]
    metrics: dict[str | None, list[dict[str, str]]]
    metrics = {None: [], "macro": [], "count": drawn}
    estimated: list[dict[str, Any]] = []
    for metric in evaluate.metrics:
        module, _, name = metric.class_name.rpartition(":")
        class_id, kind = metric.params.get("class_id"), metric.average
        if not module:
            target = targets.index(metric.target) if metric.target in targets else None
            about = {"class_name": name, "params": metric.params, "target": target}
            about |= {"kind": result_name(name), "is_macro": kind is not None}
            estimated.append({**about, "name": metric.name})
        config = json.dumps({"name": metric.name, **metric.params})
        if is_regression and name in ("RelativeError", "R2Score"):
            module = module or regression_metrics.__name__
        item = {"class_name": name, "module": module, "config": config}
        if metric.target in targets:
            of = {"index": targets.index(metric.target), "params": metric.params}
            given = {"name": metric.name, "metric": name, "module": module, **of}
            item = make(regression_metrics.OfTarget, **given)
        is_of_class = kind is not None or class_id is not None
        is_decided = is_one and (classes > 2) == is_of_class
        if is_decided and counting_metrics.OfPredictedClass.replaces(
            name, metric.params
        ):
            given = {"name": metric.name, "metric": name, "class_id": class_id}
            kind, item = (
                None,
                make(counting_metrics.OfPredictedClass, **given, **of_label),
            )
        is_count = sample_weight and name == "ExampleCount"
        metrics["count" if is_count else kind].append(item)
    known = make(
        estimates.MetricEstimates,
        metrics=estimated,
        task=label.task,
        classes=classes,
        prediction_key=key,
    )
    weights = dict.fromkeys(map(str, range(classes)), 1.0)
    average = {"macro_average": True, "class_weights": weights}
    macro = {"metrics": metrics["macro"], "aggregate": average}
    # To TFMA: our counts take the weights themselves.
    unweighted = {"example_weights": {"unweighted": True}} if sample_weight else {}
    specs: list[dict[str, Any]]
    specs = [{"metrics": metrics[None]}, macro]
    # Each its own, as further models are evaluated by the last alone.
    specs += [{"metrics": part, **unweighted} for part in (drawn, [known])]
    model = {
        "signature_name": "serving_default",
        "prediction_key": key,
        "label_key": label.key,
        "example_weight_key": sample_weight or "",
        "preprocessing_function_names": ["transform_features"],
        "model_type": "tf_generic",
    }
    slices = [{"feature_keys": list(names)} for names in evaluate.slices]
    document = {
        "model_specs": [model],
        "metrics_specs": [spec for spec in specs if spec["metrics"]],
        "slicing_specs": [{}, *slices],
    }
    return json_format.ParseDict(document, config_pb2.EvalConfig())
