"""TFLite files: conversion by quantization, and their predictions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.keras_of import as_tf
from sluice.errors import NodeError

SIGNATURE = "serving_default"

Rows = Mapping[str, np.ndarray]


def write_tflite(
    model: Any, path: Path, output: str, quantize: str, examples: Rows
) -> None:
    """Converts a model, with the signature ``serving_default``.

    Args:
      model: with a list of inputs.
      path: of the file.
      output: the name of the output in the signature.
      quantize: as the config has it.
      examples: the inputs by their names in the signature, in the order of the model's;
        ``int8`` takes their ranges.

    Raises:
      NodeError: TFLite cannot convert it.
    """
    module = tf.Module()
    # Not the model: see ``pipeline.training.export``.
    module.variables_of_model = as_tf(model.variables)
    specs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype, name)
        for name, tensor in zip(examples, model.inputs, strict=True)
    }

    @tf.function
    def predict(**tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        return {output: model([tensors[name] for name in specs], training=False)}

    function = predict.get_concrete_function(**specs)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={SIGNATURE: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if quantize != "none":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "int8":
            converter.representative_dataset = lambda: one_by_one(examples)
        try:
            content = converter.convert()
        except Exception as error:  # ConverterError, and whatever its parts raise.
            reason = " ".join(str(error).split())
            raise NodeError(
                f"TFLite cannot convert the model: {reason:.300}",
                where="export",
                hint="leave tflite out of export, or replace the layer that does this",
            ) from error
    path.write_bytes(content)


def load_tflite(path: Path) -> Callable[[Rows], np.ndarray]:
    """Returns a function from inputs to the predictions of a file."""
    interpreter = tf.lite.Interpreter(str(path))
    run: Any = interpreter.get_signature_runner(SIGNATURE)
    return lambda rows: next(iter(run(**rows).values()))


def one_by_one(rows: Rows) -> Any:
    """Yields each example as a batch of its own."""
    count = len(next(iter(rows.values())))
    for i in range(count):
        yield {name: value[i : i + 1] for name, value in rows.items()}
