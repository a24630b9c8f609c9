"""The ``Pusher`` node: pushes a blessed model as a new version, atomically."""

from __future__ import annotations

from typing import Any

from tfx.components.pusher import component
from tfx.dsl.components.base import executor_spec

from components.pusher import executor


class Pusher(component.Pusher):
    """TFX's Pusher with another executor: it pushes through ``serving.model_store``.

    Inputs, parameters and output are TFX's own. Versions come from a counter instead
    of the clock, a version appears by one rename, and a model that is already the
    newest is not pushed again. See docs/adr/0007-own-pusher.md.

    The pipeline that pushes first owns the directory. A ``workspace_id`` in
    ``custom_config`` distinguishes pipelines of the same name.

    Example::

        Pusher(
            model=trainer.outputs["model"],
            model_blessing=verdict.outputs["blessing"],
            push_destination=pusher_pb2.PushDestination(
                filesystem=pusher_pb2.PushDestination.Filesystem(
                    base_directory="serving"
                )
            ),
        )
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Declares the node, with the arguments of TFX's ``Pusher``.

        Raises:
          ValueError: there is no ``push_destination``, or no model to push.
        """
        super().__init__(*arguments, **named)
        # TFX's constructor asks for it only where the executor is TFX's own.
        if self.exec_properties["push_destination"] is None:
            raise ValueError("push_destination is required")
