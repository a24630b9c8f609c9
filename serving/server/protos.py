"""Requests of TensorFlow Serving's protos to tensors, and tensors to its results."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from serving.server.servable import Servable, Signature, Tensors
from serving.server.status import invalid

Method = Literal["predict", "classify", "regress"]
# Names of the tensors, as in ``tf.saved_model``.
EXAMPLES = "inputs"
_CLASSES, _SCORES, _VALUES = "classes", "scores", "outputs"
_OUTPUTS = {"classify": {_CLASSES, _SCORES}, "regress": {_VALUES}}


def tensors_of(request: Any, signature: Signature, max_bytes: int) -> Tensors:
    """Returns the tensors of a ``PredictRequest``, by name.

    Raises:
      StatusError: INVALID_ARGUMENT, one is not valid, or has more than ``max_bytes``: a
        tensor of any size may be sent as one value.
    """
    import tensorflow as tf

    tensors = {}
    # TensorFlow Serving, too, takes defaults for what is missing.
    for name, proto in {**signature.definition.defaults, **request.inputs}.items():
        size = math.prod(dim.size for dim in proto.tensor_shape.dim)
        if size * 8 > max_bytes:
            raise invalid(f"input {name!r} has {size:,} values, which are too many")
        try:
            tensors[name] = tf.make_ndarray(proto)
        except Exception as error:
            raise invalid(f"input {name!r} is not a valid tensor: {error}") from error
    return tensors


def examples_of(source: Any) -> np.ndarray:
    """Returns the serialized examples of an ``Input``, string ``[N]``.

    Values of a context are those of each example that lacks them.

    Raises:
      StatusError: INVALID_ARGUMENT, there are none.
    """
    kind = source.WhichOneof("kind")
    examples = getattr(source, kind).examples if kind else []
    if not examples:
        raise invalid("Input is empty.")
    has_context = kind == "example_list_with_context"
    # Of protos in one text the later values count.
    context = getattr(source, kind).context.SerializeToString() if has_context else b""
    return np.array([context + x.SerializeToString() for x in examples], object)


def check_method(signature: Signature, method: Method) -> None:
    """Checks that a signature takes examples and returns classes, or values.

    Raises:
      StatusError: INVALID_ARGUMENT, it does not.
    """
    if method == "predict":
        return
    allowed = _OUTPUTS[method]
    if {*signature.inputs} != {EXAMPLES} or not {*signature.outputs} <= allowed:
        raise invalid(
            f"signature {signature.name!r} is not for {method}: that takes one input, "
            f"{EXAMPLES!r}, and returns {' and '.join(map(repr, sorted(allowed)))}"
        )


def classification_of(outputs: Tensors, count: int, result: Any) -> None:
    """Adds the classes of ``count`` examples to a ``ClassificationResult``.

    Raises:
      StatusError: INVALID_ARGUMENT, as by TensorFlow Serving, if the model returns
        others than string and float32 ``[N, classes]``.
    """
    classes, scores = outputs.get(_CLASSES), outputs.get(_SCORES)
    shapes = {value.shape for value in outputs.values()}
    shape, *others = shapes
    wrong = others or len(shape) != 2 or shape[0] != count
    if wrong or (scores is not None and scores.dtype != np.float32):
        raise invalid(
            f"Expected Tensor shape: [batch_size num_classes] but got {shapes}"
        )
    for row in range(count):
        answer = result.classifications.add()
        for column in range(shape[1]):
            item = answer.classes.add()
            if classes is not None:
                item.label = classes[row, column]
            if scores is not None:
                item.score = scores[row, column]


def regression_of(outputs: Tensors, count: int, result: Any) -> None:
    """Adds the values of ``count`` examples to a ``RegressionResult``.

    Raises:
      StatusError: INVALID_ARGUMENT, as by TensorFlow Serving, if the model returns
        others than float32 ``[N]`` or ``[N, 1]``.
    """
    values = outputs[_VALUES]
    if values.shape not in [(count,), (count, 1)] or values.dtype != np.float32:
        raise invalid(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] "
            f"but got {values.shape}"
        )
    for value in values.ravel():
        result.regressions.add(value=value)


RESULT_OF = {"classify": classification_of, "regress": regression_of}


def answer_log(servable: Servable, log: Any, max_bytes: int) -> None:
    """Computes the request of a ``PredictionLog``, for its effect on the model.

    Raises:
      StatusError: it fails; UNIMPLEMENTED is not raised, but logs of other requests
        than predict, classify and regress are refused.
    """
    kind = log.WhichOneof("log_type")
    methods: dict[str, Method] = {
        "predict_log": "predict",
        "classify_log": "classify",
        "regress_log": "regress",
    }
    if kind not in methods:
        raise invalid(f"a log of the type {kind} cannot be sent")
    request = getattr(log, kind).request
    signature = servable.signature(request.model_spec.signature_name)
    check_method(signature, methods[kind])
    if kind == "predict_log":
        tensors = tensors_of(request, signature, max_bytes)
    else:
        tensors = {EXAMPLES: examples_of(request.input)}
    signature.check(tensors)
    signature.run(tensors)
