"""Model document: files, signatures and size of a ``Model`` artifact."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath
from typing import Any

from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for

_SAVED_MODEL = "saved_model.pb"
_SERVING_DIR = "Format-Serving"
# Of TensorFlow's own making, such as "__saved_model_init_op".
_HIDDEN = "__"


def model(uri: str) -> dict[str, Any] | None:
    """Returns the description of a model; None if the artifact is empty.

    Args:
      uri: of the artifact, local or remote.
    """
    entries = storage_for(uri).list(uri, recursive=True)
    if not entries:
        return None
    files = sorted(entries, key=lambda entry: (-entry.size_bytes, entry.name))
    description = {
        "size_bytes": sum(entry.size_bytes for entry in entries),
        "files": [
            {"path": entry.name, "size_bytes": entry.size_bytes} for entry in files
        ],
    }
    paths = [PurePosixPath(entry.name) for entry in entries]
    folders = [str(path.parent) for path in paths if path.name == _SAVED_MODEL]
    if not folders:
        return {**description, "signatures": []}
    served = _SERVING_DIR if _SERVING_DIR in folders else folders[0]
    with local_copy(os.path.join(uri, served), (_SAVED_MODEL,)) as folder:
        return {**description, **_saved_model(folder / _SAVED_MODEL)}


def _saved_model(path: Path) -> dict[str, Any]:
    from tensorflow.core.protobuf import saved_model_pb2

    graph = saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs[0]
    variables = [
        node.variable
        for node in graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]
    return {
        "tensorflow_version": graph.meta_info_def.tensorflow_version,
        "signatures": [
            {
                "name": name,
                "inputs": _tensors(signature.inputs),
                "outputs": _tensors(signature.outputs),
            }
            for name, signature in sorted(graph.signature_def.items())
            if not name.startswith(_HIDDEN)
        ],
        "parameters": sum(map(_size, variables)),
        "trainable_parameters": sum(_size(x) for x in variables if x.trainable),
    }


def _size(variable: Any) -> int:
    return math.prod(size.size for size in variable.shape.dim)


def _tensors(tensors: Any) -> list[dict[str, Any]]:
    import tensorflow as tf

    return [
        {
            "name": name,
            "dtype": tf.dtypes.as_dtype(item.dtype).name,
            "shape": _shape(item.tensor_shape),
        }
        for name, item in sorted(tensors.items())
    ]


def _shape(shape: Any) -> list[int] | None:
    """Returns the sizes, -1 for an unknown one; None if it has no known rank."""
    return None if shape.unknown_rank else [size.size for size in shape.dim]
