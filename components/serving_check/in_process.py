"""Asks a SavedModel serialized tf.Examples in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from components.serving_check.judge import Answer, read_answer
from serving.signatures import EXAMPLES


class LoadedModel:
    """A model in this process; its operations may raise anything."""

    def __init__(self, saved_model: Path) -> None:
        # A signature alone does not keep the variables.
        self._model = tf.saved_model.load(str(saved_model))
        self._serve = self._model.signatures[EXAMPLES]
        (self._input,) = self._serve.structured_input_signature[1]

    def predict(self, records: Sequence[bytes]) -> list[dict[str, Any]]:
        """Returns the outputs of each example, by name."""
        outputs = self._serve(**{self._input: tf.constant(records)})
        return rows_of({key: x.numpy() for key, x in outputs.items()})


def rows_of(outputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Returns the outputs of each example, by name; the label as text."""
    values = dict(outputs)
    if "label" in values:
        texts = values["label"].astype(bytes)
        values["label"] = np.char.decode(texts, "utf-8", "replace")
    rows = zip(*(x.tolist() for x in values.values()), strict=True)
    return [dict(zip(values, x, strict=True)) for x in rows]


def ask(model: LoadedModel, records: Sequence[bytes], facts: Any) -> list[Answer | str]:
    """Returns the answer to each tf.Example, or why there is none.

    One by one if one of a batch is refused.
    """
    try:
        outputs = model.predict(records)
        found = read_answer(outputs, range(len(records)), facts)
    except Exception as error:  # The model's operations may raise anything.
        found = type(error).__name__
    if isinstance(found, Answer):
        rows = zip(found.numbers[:, None], found.labels[:, None], strict=True)
        return [Answer(*row) for row in rows]
    if len(records) == 1:
        return [found]
    return [x for record in records for x in ask(model, [record], facts)]
