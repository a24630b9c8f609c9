"""Base class of our TFX components: what a node takes stands once, in its spec."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from tfx import types
from tfx.dsl.components.base import base_component


class Component(base_component.BaseComponent):
    """A component that is made of the inputs and parameters of its spec.

    Settings are stored as JSON. The outputs are made.
    """

    def __init__(self, **arguments: Any) -> None:
        """Declares the node.

        Args:
          **arguments: channels and values, by the keys of ``SPEC_CLASS``.
        """
        stored = {key: _stored(value) for key, value in arguments.items()}
        outputs = {
            key: types.Channel(type=output.type)
            for key, output in self.SPEC_CLASS.OUTPUTS.items()
        }
        super().__init__(self.SPEC_CLASS(**stored, **outputs))


def _stored(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, dict | list | tuple):
        # Sorted, as TFX writes the Trainer's: the layers follow the features.
        return json.dumps(value, sort_keys=True, default=BaseModel.model_dump)
    return value
