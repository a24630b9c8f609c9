"""One loaded version of a model.

As in TensorFlow Serving, a SavedModel is a graph in a session of its own, and a
signature is called by the names of its tensors. Loading takes half the time of
``tf.saved_model.load``, a call 0.15 ms less. No file is read any more once a version is
loaded: it stays served if its files are damaged or deleted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from serving import signatures
from serving.server.status import Code, StatusError, invalid
from sluice.errors import ServingError
from sluice.tfrecords import tfrecord

EXAMPLES = "inputs"  # The input of signatures for ``classify`` and ``regress``.
_METHODS = {"classify": {"classes", "scores"}, "regress": {"outputs"}}
_INIT_OP = "__saved_model_init_op"
tf.get_logger().setLevel("ERROR")  # Loaders of version 1 are called deprecated.
Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Signature:
    """A signature.

    Attributes:
      name: in the model.
      definition: the ``SignatureDef``.
      inputs: the ``tf.TensorSpec`` of each.
      outputs: the names, sorted.
      is_batchable: whether all inputs and outputs have one row per example, as far as
        the model says.
      function: takes arrays in the order of ``inputs``, returns those of ``outputs``.
    """

    name: str
    definition: Any
    inputs: dict[str, Any]
    outputs: tuple[str, ...]
    is_batchable: bool
    function: Callable[..., list[np.ndarray]]

    def check(self, tensors: Tensors) -> None:
        """Raises StatusError, INVALID_ARGUMENT, if tensors are not the inputs."""
        if tensors.keys() != self.inputs.keys():
            raise invalid(
                f"input size does not match signature: {len(tensors)}!="
                f"{len(self.inputs)}; sent: {sorted(tensors)}, required: "
                f"{sorted(self.inputs)}"
            )
        for name, spec in self.inputs.items():
            tensor = tensors[name]
            is_type = tensor.dtype == spec.dtype.as_numpy_dtype
            if not is_type or not spec.shape.is_compatible_with(tensor.shape):
                raise invalid(
                    f"input {name!r} is {tensor.dtype} {tensor.shape}, but the "
                    f"signature expects {spec.dtype.name} {spec.shape}"
                )

    def check_method(self, method: str) -> None:
        """Raises StatusError if it does not take examples and return classes, or so."""
        allowed = _METHODS[method]
        if {*self.inputs} != {EXAMPLES} or not {*self.outputs} <= allowed:
            raise invalid(
                f"signature {self.name!r} is not for {method}: that has the input "
                f"{EXAMPLES!r}, and the outputs {sorted(allowed)}"
            )

    def run(self, tensors: Tensors) -> dict[str, np.ndarray]:
        """Calls it with checked inputs; raises StatusError."""
        try:
            values = self.function(*(tensors[name] for name in self.inputs))
        except Exception as error:
            raise StatusError.of(error) from error
        # A session returns a string without dimensions as bytes.
        arrays = [x if hasattr(x, "shape") else np.array(x, object) for x in values]
        return dict(zip(self.outputs, arrays, strict=True))


class Servable:
    """A SavedModel that is loaded, and answers until ``close``.

    Attributes:
      version: its number.
      signature_defs: by name.
      facts: JSON files of its folder ``assets.extra``, by name.
    """

    def __init__(self, directory: str | Path, version: int) -> None:
        """Loads the model; raises ServingError."""
        self.version = version
        # GPU memory is shared with the version that is served meanwhile.
        options = tf.compat.v1.GPUOptions(allow_growth=True)
        self._session = tf.compat.v1.Session(
            graph=tf.Graph(), config=tf.compat.v1.ConfigProto(gpu_options=options)
        )
        self._signatures: dict[str, Signature] = {}
        load = tf.compat.v1.saved_model.load
        try:
            with self._session.graph.as_default():
                graph = load(self._session, ["serve"], str(directory))
            extra = Path(directory, "assets.extra").glob("*.json")
            self.facts = {path.name: json.loads(path.read_bytes()) for path in extra}
        except Exception as error:
            self.close()
            raise ServingError(
                f"the model cannot be loaded: {type(error).__name__}: {error}",
                where=directory,
            ) from error
        self.signature_defs = dict(graph.signature_def)
        self.signature_defs.pop(_INIT_OP, None)

    def signature(self, name: str) -> Signature:
        """Returns a signature; "" is the default one.

        Raises:
          StatusError: FAILED_PRECONDITION, there is none of this name; UNIMPLEMENTED,
            its inputs or outputs are no plain tensors.
        """
        name = name or signatures.EXAMPLES
        if name not in self._signatures:
            self._signatures[name] = self._make_signature(name)
        return self._signatures[name]

    def _make_signature(self, name: str) -> Signature:
        definition = self.signature_defs.get(name)
        if definition is None:
            what = f'Serving signature key "{name}" not found.'
            raise StatusError(Code.FAILED_PRECONDITION, what)
        outputs = dict(sorted(definition.outputs.items()))
        infos = [*definition.inputs.values(), *outputs.values()]
        if any(info.WhichOneof("encoding") != "name" for info in infos):
            what = f"signature {name!r} has sparse or composite tensors"
            raise StatusError(Code.UNIMPLEMENTED, what)
        specs = signatures.input_specs(definition)
        fed = [definition.inputs[key].name for key in specs]
        fetched = [info.name for info in outputs.values()]
        try:
            function = self._session.make_callable(fetched, fed)
        except Exception as error:
            raise StatusError.of(error) from error
        shapes = [tf.TensorShape(info.tensor_shape) for info in infos]
        by_row = all(x.rank is None or (x.rank and x[0] is None) for x in shapes)
        return Signature(name, definition, specs, (*outputs,), by_row, function)

    def close(self) -> None:
        """Frees the model's memory; no call may be under way."""
        self._signatures.clear()
        self._session.close()


def tensors_of(request: Any, signature: Signature, max_bytes: int) -> Tensors:
    """Returns the tensors of a ``PredictRequest``.

    Raises:
      StatusError: INVALID_ARGUMENT, one is invalid, or has more than ``max_bytes``: a
        tensor of any size may be sent as one value.
    """
    tensors = {}
    # Defaults of the signature stand for what is missing, as in TensorFlow Serving.
    for name, proto in {**signature.definition.defaults, **request.inputs}.items():
        if math.prod(dim.size for dim in proto.tensor_shape.dim) * 8 > max_bytes:
            raise invalid(f"input {name!r} is too large: {proto.tensor_shape.dim}")
        try:
            tensors[name] = tf.make_ndarray(proto)
        except Exception as error:
            raise invalid(f"input {name!r} is not a valid tensor: {error}") from error
    return tensors


def examples_of(source: Any) -> np.ndarray:
    """Returns the serialized examples of an ``Input``, string ``[N]``.

    Raises:
      StatusError: INVALID_ARGUMENT, there are none.
    """
    kind = source.WhichOneof("kind")
    content = getattr(source, kind) if kind else None
    if not content or not content.examples:
        raise invalid("Input is empty.")
    # Of two messages in a row the values of the second count.
    with_context = kind == "example_list_with_context"
    context = content.context.SerializeToString() if with_context else b""
    return np.array([context + x.SerializeToString() for x in content.examples], object)


def warm_up(servable: Servable, directory: str | Path, max_bytes: int) -> None:
    """Computes the requests of a model's warm-up file, if it has one.

    Raises:
      ServingError: the file is damaged, or a request in it fails.
    """
    path = Path(directory, signatures.WARM_UP_FILE)
    try:
        for record in tfrecord.read(path) if path.exists() else ():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            request = log.predict_log.request  # The trainer's have no other kind.
            signature = servable.signature(request.model_spec.signature_name)
            tensors = tensors_of(request, signature, max_bytes)
            signature.check(tensors)
            signature.run(tensors)
    except Exception as error:
        raise ServingError(
            f"a warm-up request failed: {type(error).__name__}: {error}", where=path
        ) from error
