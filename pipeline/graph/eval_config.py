"""Turns the config's ``evaluate`` section into TFMA's EvalConfig.

It says what to measure and on which slices. Thresholds are not in it: the model
verdict judges, see docs/adr/0001-model-verdict.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from components.model_verdict import class_counts
from pipeline.config.feature_set import Label


def eval_config(
    metrics: Sequence[tuple[str, str | None, dict[str, Any]]],
    slices: Sequence[Sequence[str]],
    label: Label,
) -> Any:
    """Returns a ``tfma.EvalConfig`` with a candidate and a baseline model.

    Args:
      metrics: class name, result name (None: TFMA's own) and parameters of each.
      slices: lists of features to slice by; the overall slice is always there.
      label: names the label and its classes.
    """
    from google.protobuf import json_format
    from tensorflow_model_analysis.proto import config_pb2

    model = {
        "signature_name": "serving_default",
        "prediction_key": "probabilities",
        "label_key": label.key,
        "preprocessing_function_names": ["transform_features"],
        "model_type": "tf_generic",
    }
    document = {
        "model_specs": [model],
        "metrics_specs": [
            {"metrics": [_metric(*metric) for metric in metrics]},
            {"metrics": [class_counts.metric_config(label.class_names)]},
        ],
        "slicing_specs": [{}, *({"feature_keys": list(keys)} for keys in slices)],
    }
    return json_format.ParseDict(document, config_pb2.EvalConfig())


def _metric(name: str, result: str | None, params: dict[str, Any]) -> dict[str, str]:
    config = {**({"name": result} if result else {}), **params}
    return {"class_name": name, **({"config": json.dumps(config)} if config else {})}
