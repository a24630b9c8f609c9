"""The ``Tuner`` node: TFX's component, whose function may write beside the results."""

from __future__ import annotations

from typing import Any

from tfx.components.tuner import component, executor
from tfx.dsl.components.base import executor_spec
from tfx.types import artifact_utils

from components.artifacts import Artifacts


class Executor(executor.Executor):
    """TFX's executor, for which ``working_dir`` is the artifact of the results."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        results = artifact_utils.get_single_uri(output_dict["tuner_results"])
        tuner = executor.search(
            input_dict, exec_properties, results, print_tuning_summary=False
        )
        executor.write_best_hyperparameters(tuner, output_dict)


class Tuner(component.Tuner):
    """TFX's Tuner; inputs, outputs and parameters are TFX's own.

    Example::

        tuner = Tuner(
            examples=example_gen.outputs["examples"],
            transform_graph=transform.outputs["transform_graph"],
            tuner_fn="pipeline.training.tuning.tuner_fn",
            custom_config={"tune": ..., "train": ..., ...},
        )
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
