"""The ``Evaluator`` node: TFX's component, with thresholds and further models.

Its metrics are TFMA's, and our own of ``components.counting_metrics`` and
``components.estimates``.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import tensorflow as tf
import tensorflow_model_analysis as tfma
from tfx.components.evaluator import component, executor
from tfx.dsl.components.base import executor_spec
from tfx.types import standard_component_specs
from tfx.utils import path_utils, proto_utils

from components.artifacts import Artifacts, baseline_and_older, without_absent
from components.evaluate_batches import evaluate_batches
from sluice import progress
from sluice.metrics import THRESHOLD
from sluice.model_facts import read_facts
from sluice.patches.tfma import evaluate_also, missing_names


class Executor(executor.Executor):
    """TFX's executor, for which a baseline that stands for none is left out.

    Where a resolver finds no model, it evaluates nothing.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        inputs = without_absent(input_dict)
        older = _keep_baseline(inputs)
        exec_properties = _with_thresholds(inputs, older, exec_properties)
        if missing := missing_names():
            progress.note(
                f"this TFMA has no {', '.join(missing)}: AUC and the like count in "
                "equal steps of the probability, too coarse for rare positives"
            )
        if inputs.get("model", True):
            # AutoGraph would take 3 s to convert the code of Keras metrics, which run
            # eagerly; a tf.function is still converted.
            evaluate = tf.autograph.experimental.do_not_convert(super().Do)
            with ExitStack() as during:
                during.enter_context(evaluate_batches())
                if older:
                    further = evaluate_also(older, "MetricEstimates")
                    during.enter_context(further)
                evaluate(inputs, output_dict, exec_properties)


def _keep_baseline(inputs: Artifacts) -> dict[str, str]:
    """Leaves one baseline in the inputs, and returns the paths of older models."""
    (candidate,) = inputs.get("model") or [None]
    given = inputs.get("baseline_model", [])
    uri = candidate.uri if candidate else ""
    inputs["baseline_model"], older = baseline_and_older(given, uri)
    return {
        f"{number} before the baseline": path_utils.serving_model_path(uri)
        for number, uri in enumerate(older, start=1)
    }


def _with_thresholds(
    inputs: Artifacts, older: dict[str, str], exec_properties: Any
) -> Any:
    """Returns the properties with the thresholds of the models in our metrics.

    Removes models whose classes or targets, or their order, are others.
    """
    facts = {
        name: read_facts(path_utils.serving_model_path(artifact.uri))
        for name, key in (("candidate", "model"), ("baseline", "baseline_model"))
        for artifact in inputs.get(key, ())
    }
    facts |= {name: read_facts(path) for name, path in older.items()}
    candidate = facts.get("candidate", {})
    others = {
        name
        for name, found in facts.items()
        for key in ("classes", "targets")
        if found.get(key, candidate.get(key)) != candidate.get(key)
    }
    if "baseline" in others:
        inputs["baseline_model"] = []
        older.clear()
    for name in others & older.keys():
        del older[name]
    thresholds = {name: x.get("threshold", THRESHOLD) for name, x in facts.items()}
    thresholds[""] = thresholds.get("candidate", THRESHOLD)  # Alone it has no name.
    key = standard_component_specs.EVAL_CONFIG_KEY
    config = proto_utils.json_to_proto(exec_properties[key], tfma.EvalConfig())
    is_binary = len(candidate.get("classes") or ()) == 2
    for spec in config.metrics_specs:
        for metric in spec.metrics:
            if is_binary and metric.module.startswith("components."):
                params = json.loads(metric.config)
                metric.config = json.dumps({**params, "thresholds": thresholds})
    return {**exec_properties, key: proto_utils.proto_to_json(config)}


class Evaluator(component.Evaluator):
    """TFX's Evaluator; inputs, outputs and parameters are TFX's own.

    Example::

        evaluator = Evaluator(
            examples=example_gen.outputs["examples"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            eval_config=eval_config,
        )
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
