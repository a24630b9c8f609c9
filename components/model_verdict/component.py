"""The ``ModelVerdict`` node: blesses a model or explains why not; always succeeds."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.model_verdict import driver, executor
from components.model_verdict.threshold import Settings
from sluice.node_kinds import ABOUT_BASELINE


class ModelVerdictSpec(component_spec.ComponentSpec):
    """An evaluation in; a verdict and a blessing out."""

    PARAMETERS = {
        "settings": component_spec.ExecutionParameter(type=str),
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
            settings=Settings(
                thresholds=(Threshold(metric="auc", lower_bound=0.9),),
                classes=("no", "yes"),
                split="test",
            ),
        )
    """

    SPEC_CLASS = ModelVerdictSpec
    # It uses no Beam, but its base class wants the context of one that does.
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(self, *, settings: Settings, **inputs: types.BaseChannel) -> None:
        """Declares the node.

        Args:
          settings: thresholds, classes and the split that was evaluated.
          **inputs: the artifacts, as the spec names them; the baseline is optional.
        """
        super().__init__(
            ModelVerdictSpec(
                settings=settings.model_dump_json(),
                verdict=types.Channel(type=artifacts.ModelVerdict),
                blessing=types.Channel(type=standard_artifacts.ModelBlessing),
                **inputs,
            )
        )
