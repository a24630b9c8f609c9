"""The ``Evaluator`` node: TFX's component, also for services without a baseline."""

from __future__ import annotations

from typing import Any

from tfx.components.evaluator import component, executor
from tfx.dsl.components.base import executor_spec

from components.artifacts import without_absent


class Executor(executor.Executor):
    """TFX's executor, for which a baseline that stands for none is left out."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        super().Do(without_absent(input_dict), output_dict, exec_properties)


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
