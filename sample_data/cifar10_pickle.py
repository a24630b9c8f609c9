"""Restricted unpickler for batches of CIFAR-10: arrays, lists, dicts and strings.

A pickle can call any function that it can name. This unpickler accepts the names of
NumPy's arrays and data types only, and replaces them by classes that store their
arguments, so NumPy is not called either. It is Python's unpickler in Python, because
the one in C allocates memory for any memo number that a pickle uses.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

_ROW_BYTES = 3 * 32 * 32
_MAX_ROWS = 20_000
_RECONSTRUCT = frozenset(
    (module, "_reconstruct")
    for module in ("numpy.core.multiarray", "numpy._core.multiarray")
)


class NoBatchError(Exception):
    """The content is not a batch of CIFAR-10."""


class _Dtype:
    """Replaces ``numpy.dtype``."""

    def __init__(self, *arguments: Any) -> None:
        self.name = arguments[0] if arguments else None

    def __setstate__(self, state: Any) -> None:
        """Ignores byte order and alignment."""


class _Array:
    """Replaces ``numpy.ndarray`` and stores its state."""

    shape: Any = None
    dtype: Any = None
    in_columns: Any = None
    content: Any = None

    def __init__(self, *arguments: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.in_columns, self.content = state


def _encode(text: str, encoding: str) -> bytes:
    """Replaces ``_codecs.encode``, used for bytes in protocols 0 to 2."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"the encoding {encoding!r} is not allowed")
    return text.encode("latin-1")


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined, misc, unused-ignore]
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _RECONSTRUCT:
            return _Array
        if (module, name) == ("numpy", "ndarray"):
            return _Array
        if (module, name) == ("numpy", "dtype"):
            return _Dtype
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise pickle.UnpicklingError(f"the name {module}.{name} is not allowed")


def load_batch(content: bytes) -> tuple[bytes, list[int]]:
    """Returns the pixels, 3,072 bytes per image, and the labels of a batch.

    Raises:
      NoBatchError: the pickle is damaged, names anything but arrays, or contains
        something else.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # A damaged pickle can raise any exception.
        raise NoBatchError(str(error) or type(error).__name__) from error
    if not isinstance(batch, dict):
        raise NoBatchError(f"a {type(batch).__name__}")
    fields = {
        key.decode("latin-1") if isinstance(key, bytes) else key: value
        for key, value in batch.items()
    }
    labels = fields.get("labels")
    if not isinstance(labels, list) or any(type(label) is not int for label in labels):
        raise NoBatchError("'labels' is not a list of integers")
    if not 0 < len(labels) <= _MAX_ROWS:
        raise NoBatchError(f"{len(labels):,} labels")
    if any(not 0 <= label < 256 for label in labels):
        raise NoBatchError("a label that is not the number of a class")
    return _pixels(fields.get("data"), len(labels)), labels


def _pixels(array: Any, rows: int) -> bytes:
    if not isinstance(array, _Array):
        raise NoBatchError("'data' is not an array")
    dtype = array.dtype.name if isinstance(array.dtype, _Dtype) else None
    if dtype not in ("u1", b"u1", "uint8", b"uint8"):
        raise NoBatchError(f"'data' is an array of {dtype!r}, not of uint8")
    if array.shape != (rows, _ROW_BYTES) or array.in_columns:
        raise NoBatchError(
            f"'data' has the shape {array.shape}, not ({rows}, {_ROW_BYTES})"
        )
    content = array.content
    if not isinstance(content, bytes) or len(content) != rows * _ROW_BYTES:
        raise NoBatchError("'data' has not as many bytes as its shape says")
    return content
