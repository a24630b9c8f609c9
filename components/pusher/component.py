"""The ``Pusher`` node: a blessed model becomes a version, whole or not at all."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.pusher import executor


class PusherSpec(component_spec.ComponentSpec):
    """Model and blessing in, a pushed model out."""

    PARAMETERS = {"serving_dir": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "blessing": component_spec.ChannelParameter(
            type=standard_artifacts.ModelBlessing
        ),
    }
    OUTPUTS = {
        "pushed_model": component_spec.ChannelParameter(
            type=standard_artifacts.PushedModel
        ),
    }


class Pusher(base_component.BaseComponent):
    """Pushes through ``serving.model_store``.

    Unlike TFX's Pusher, versions come from a counter instead of the clock, a version
    appears by one rename, and a model that is already the newest is not pushed again.

    Example::

        Pusher(
            model=trainer.outputs["model"],
            blessing=verdict.outputs["blessing"],
            serving_dir="serving",
        )
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self, model: types.BaseChannel, blessing: types.BaseChannel, serving_dir: str
    ) -> None:
        """Declares the node.

        Args:
          model: output of Trainer.
          blessing: output of ModelVerdict.
          serving_dir: the folder that a model server watches.
        """
        super().__init__(
            PusherSpec(
                model=model,
                blessing=blessing,
                serving_dir=serving_dir,
                pushed_model=types.Channel(type=standard_artifacts.PushedModel),
            )
        )
