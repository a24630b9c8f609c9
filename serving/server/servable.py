"""One loaded version of a model.

As in TensorFlow Serving, a SavedModel is a graph in a session of its own: signatures
are called by the names of their tensors, and it takes half the time of
``tf.saved_model.load`` to load and 0.15 ms less to call. Files are not read any more
once a version is loaded, so it stays served if they are damaged or deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from serving.server.status import Code, StatusError, invalid
from sluice.compat import prepare_environment
from sluice.errors import ServingError
from sluice.tfrecords import tfrecord

DEFAULT_SIGNATURE = "serving_default"
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
# As TensorFlow Serving, which refuses files with more.
_MAX_WARMUP_RECORDS = 1000
_INIT_OP = "__saved_model_init_op"
Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Input:
    """An input of a signature.

    Attributes:
      dtype: NumPy's; ``object`` for strings, whose values are bytes.
      dtype_name: TensorFlow's, such as ``string``.
      shape: -1 where any size is allowed; None for any shape.
    """

    dtype: np.dtype
    dtype_name: str
    shape: tuple[int, ...] | None

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor may have this shape."""
        return self.shape is None or (
            len(shape) == len(self.shape)
            and all(a in (-1, b) for a, b in zip(self.shape, shape, strict=True))
        )


@dataclass(frozen=True)
class Signature:
    """A signature.

    Attributes:
      name: in the model.
      definition: the ``SignatureDef``.
      inputs: by name.
      outputs: the names, sorted.
      is_batchable: whether every input and output has one row per example, as far as
        the model says.
      function: takes arrays in the order of ``inputs``, returns those of ``outputs``.
    """

    name: str
    definition: Any
    inputs: dict[str, Input]
    outputs: tuple[str, ...]
    is_batchable: bool
    function: Callable[..., list[np.ndarray]]

    def check(self, tensors: Tensors) -> None:
        """Checks that tensors are the signature's inputs.

        Raises:
          StatusError: INVALID_ARGUMENT, with the first that is not.
        """
        if tensors.keys() != self.inputs.keys():
            sent, expected = {*tensors}, {*self.inputs}
            raise invalid(
                f"input size does not match signature: {len(sent)}!={len(expected)} "
                f"len({_names(sent)}) != len({_names(expected)}). Sent extra: "
                f"{_names(sent - expected)}. Missing but required: "
                f"{_names(expected - sent)}."
            )
        for name, item in self.inputs.items():
            tensor = tensors[name]
            if tensor.dtype != item.dtype:
                raise invalid(
                    f"input {name!r} has the type {tensor.dtype}, but the signature "
                    f"{self.name!r} expects {item.dtype_name}"
                )
            if not item.accepts(tensor.shape):
                raise invalid(
                    f"input {name!r} has the shape {_shape(tensor.shape)}, but the "
                    f"signature {self.name!r} expects {_shape(item.shape or ())}"
                )

    def run(self, tensors: Tensors) -> dict[str, np.ndarray]:
        """Calls it with checked inputs.

        Raises:
          StatusError: with the code of TensorFlow's error.
        """
        try:
            values = self.function(*(tensors[name] for name in self.inputs))
        except Exception as error:
            raise StatusError.of(error) from error
        return dict(zip(self.outputs, values, strict=True))


class Servable:
    """A SavedModel that is loaded, and answers until ``close``.

    Attributes:
      version: its number.
      directory: from which it was loaded.
      signature_defs: by name, without that of the initialization.
    """

    def __init__(self, directory: str | Path, version: int) -> None:
        """Loads the model.

        Raises:
          ServingError: it cannot be loaded.
        """
        prepare_environment()
        import tensorflow.compat.v1 as tf

        self.version, self.directory = version, Path(directory)
        # GPU memory is shared with the version that is served meanwhile.
        options = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
        self._session = tf.Session(graph=tf.Graph(), config=options)
        self._lock = threading.Lock()
        self._signatures: dict[str, Signature] = {}
        try:
            with self._session.graph.as_default(), _quiet():
                graph = tf.saved_model.load(self._session, ["serve"], str(directory))
        except Exception as error:
            self.close()
            raise ServingError(
                f"the model cannot be loaded: {type(error).__name__}: {error}",
                where=directory,
            ) from error
        self.signature_defs = {
            name: item for name, item in graph.signature_def.items() if name != _INIT_OP
        }

    def signature(self, name: str) -> Signature:
        """Returns a signature; "" is the default one.

        Raises:
          StatusError: FAILED_PRECONDITION, there is none of this name; UNIMPLEMENTED,
            its inputs or outputs are no plain tensors.
        """
        name = name or DEFAULT_SIGNATURE
        with self._lock:
            if name not in self._signatures:
                self._signatures[name] = self._make_signature(name)
            return self._signatures[name]

    def _make_signature(self, name: str) -> Signature:
        import tensorflow as tf

        definition = self.signature_defs.get(name)
        if definition is None:
            raise StatusError(
                Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        infos = [*definition.inputs.values(), *definition.outputs.values()]
        if any(info.WhichOneof("encoding") != "name" for info in infos):
            raise StatusError(
                Code.UNIMPLEMENTED,
                f"signature {name!r} has sparse or composite tensors",
            )
        inputs = {}
        for key in sorted(definition.inputs):
            dtype = tf.as_dtype(definition.inputs[key].dtype)
            shape = _shape_of(definition.inputs[key])
            inputs[key] = Input(np.dtype(dtype.as_numpy_dtype), dtype.name, shape)
        outputs = tuple(sorted(definition.outputs))
        shapes = map(_shape_of, infos)
        try:
            function = self._session.make_callable(
                [definition.outputs[key].name for key in outputs],
                [definition.inputs[key].name for key in inputs],
            )
        except Exception as error:
            raise StatusError.of(error) from error
        return Signature(
            name,
            definition,
            inputs,
            outputs,
            all(shape is None or shape[:1] == (-1,) for shape in shapes),
            function,
        )

    def warm_up(self, answer: Callable[[Servable, Any], Any]) -> int:
        """Sends the requests of the model's warm-up file; returns their number.

        Args:
          answer: takes this servable and a ``PredictionLog``.

        Raises:
          ServingError: the file is damaged, too long, or a request in it fails.
        """
        path = self.directory / WARMUP_FILE
        if not path.is_file():
            return 0
        from tensorflow_serving.apis import prediction_log_pb2

        sent = 0
        try:
            for record in islice(tfrecord.read(path), _MAX_WARMUP_RECORDS + 1):
                if sent == _MAX_WARMUP_RECORDS:
                    raise ValueError(f"there are more than {sent} requests")
                answer(self, prediction_log_pb2.PredictionLog.FromString(record))
                sent += 1
        except Exception as error:
            raise ServingError(
                f"warm-up request {sent} failed: {error}", where=path
            ) from error
        return sent

    def close(self) -> None:
        """Frees the model's memory; no call may be under way."""
        self._signatures.clear()
        self._session.close()


def _quiet() -> Any:
    """Returns a context without TensorFlow's warnings that its version 1 is old."""
    from tensorflow.python.util import deprecation

    return deprecation.silence()


def _shape_of(info: Any) -> tuple[int, ...] | None:
    shape = info.tensor_shape
    return None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def _names(names: set[str]) -> str:
    return f"{{{','.join(sorted(names))}}}"
