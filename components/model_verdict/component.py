"""The ``ModelVerdict`` node: blesses a model or explains why not; always succeeds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.model_verdict import driver, executor
from components.model_verdict.threshold import Threshold
from sluice.node_kinds import ABOUT_BASELINE


class ModelVerdictSpec(component_spec.ComponentSpec):
    """An evaluation in; a verdict and a blessing out."""

    PARAMETERS = {
        "thresholds": component_spec.ExecutionParameter(type=str),
        "classes": component_spec.ExecutionParameter(type=str),
        "split": component_spec.ExecutionParameter(type=str),
        # Set by the driver; see there.
        ABOUT_BASELINE: component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        "evaluation": component_spec.ChannelParameter(
            type=standard_artifacts.ModelEvaluation
        ),
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "baseline_model": component_spec.ChannelParameter(
            type=standard_artifacts.Model, optional=True
        ),
    }
    OUTPUTS = {
        "verdict": component_spec.ChannelParameter(type=artifacts.ModelVerdict),
        "blessing": component_spec.ChannelParameter(
            type=standard_artifacts.ModelBlessing
        ),
    }


class ModelVerdict(base_component.BaseComponent):
    """Compares an evaluation with the thresholds of the config, and blesses the model.

    The Evaluator only measures. So a changed threshold does not evaluate again, small
    slices can be exempt, the reasons are published, and this is the only blessing in ML
    Metadata, by which the baseline is selected. See docs/adr/0001-model-verdict.md.

    Example::

        verdict = ModelVerdict(
            evaluation=evaluator.outputs["evaluation"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            thresholds=[Threshold(metric="auc", lower_bound=0.9)],
            classes=["no", "yes"],
            split="test",
        )
    """

    SPEC_CLASS = ModelVerdictSpec
    # It uses no Beam, but its base class wants the context of one that does.
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        *,
        evaluation: types.BaseChannel,
        model: types.BaseChannel,
        baseline_model: types.BaseChannel | None = None,
        thresholds: Sequence[Threshold],
        classes: Sequence[str],
        split: str,
    ) -> None:
        """Declares the node.

        Args:
          evaluation: output of Evaluator.
          model: the candidate.
          baseline_model: the latest blessed model; None to compare with none.
          thresholds: the limits.
          classes: class names in the order of their ids.
          split: the split that Evaluator judged on.
        """
        super().__init__(
            ModelVerdictSpec(
                evaluation=evaluation,
                model=model,
                baseline_model=baseline_model,
                thresholds=json.dumps([item.model_dump() for item in thresholds]),
                classes=json.dumps(list(classes)),
                split=split,
                verdict=types.Channel(type=artifacts.ModelVerdict),
                blessing=types.Channel(type=standard_artifacts.ModelBlessing),
            )
        )
