"""Finds the line of a project's code that made a layer or an op."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import tensorflow as tf

from sluice.project import own_root


class SourceLines:
    """Lines of code in a project."""

    def __init__(self, root: Path) -> None:
        self._roots = list(dict.fromkeys([root.resolve(), own_root()]))
        self._of_layer: dict[int, str] = {}

    def innermost(self, frames: Iterable[tuple[str, int]]) -> str | None:
        """Returns ``file:line`` of the innermost frame in the project.

        Args:
          frames: file and line number, the innermost first. Those that called the
            rehearsal are not looked at.
        """
        for name, number in frames:
            path = Path(name)
            if path.parent == Path(__file__).parent:
                return None
            for root in self._roots:
                if path.is_relative_to(root) and "site-packages" not in path.parts:
                    return f"{path.relative_to(root)}:{number}"
        return None

    def of_op(self, op: tf.Operation) -> str | None:
        """Returns the line that made an op, in the forward pass."""
        frames: Sequence[Any] = op.traceback or ()
        return self.innermost((item.filename, item.lineno) for item in reversed(frames))

    def of_layer(self, layer: tf.keras.layers.Layer) -> str | None:
        """Returns the line that made a layer while ``record_layers`` was active."""
        return self._of_layer.get(id(layer))

    @contextmanager
    def record_layers(self) -> Iterator[None]:
        """Records where each layer is made: Keras traces its ops only later."""
        layer_class = tf.keras.layers.Layer
        original = layer_class.__init__

        @functools.wraps(original)
        def init(layer: Any, *args: Any, **kwargs: Any) -> None:
            line = self.innermost(_stack(sys._getframe(1)))
            if line is not None:
                self._of_layer[id(layer)] = line
            original(layer, *args, **kwargs)

        with mock.patch.object(layer_class, "__init__", init):
            yield


def _stack(frame: Any) -> Iterator[tuple[str, int]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
