"""The ``Evaluator`` node: TFX's component with another executor."""

from __future__ import annotations

from tfx.components.evaluator import component
from tfx.dsl.components.base import executor_spec

from components.evaluator import executor


class Evaluator(component.Evaluator):
    """TFX's Evaluator that takes a baseline's metrics from an earlier evaluation.

    Inputs and outputs are those of TFX. A model that has been evaluated on the same
    examples with the same EvalConfig is not evaluated again as baseline, unless the
    EvalConfig has thresholds or options, or there is a ``module_file``. Its
    metrics are those that TFX would write, with the differences of numbers and arrays.

    Example::

        evaluator = Evaluator(
            examples=example_gen.outputs["examples"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            eval_config=eval_config,
        )
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
