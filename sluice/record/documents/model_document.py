"""Model document: files, signatures, variables and layers of a ``Model`` artifact.

Signatures and variables are read from ``saved_model.pb``, without TensorFlow. Layers
are known only where the trainer has listed them, since a SavedModel has none.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sluice.record.documents.damage import damage_explained
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for

MAX_FILES = 50
MAX_LAYERS = 500
MAX_VARIABLES = 500
_SAVED_MODEL = "saved_model.pb"
_SERVING_DIR = "Format-Serving"
_FACTS_FILE = "training.json"
# Of TensorFlow's own making, such as "__saved_model_init_op".
_HIDDEN = "__"
# Returns the body of a request: from a signature's name and inputs.
MakeRequest = Callable[[str, list[dict[str, Any]]], Any]


def model_document(
    uri: str, model_run_uri: str | None, make_request: MakeRequest
) -> dict[str, Any] | None:
    """Returns the description of a model; None if the artifact is empty.

    Args:
      uri: of the artifact, local or remote.
      model_run_uri: of the ``ModelRun`` of the same training; None if there is none.
      make_request: returns an example request of a signature, or None.

    Raises:
      SluiceError: ``saved_model.pb`` is damaged.
      OSError: the artifact cannot be read.
    """
    entries = storage_for(uri).list(uri, recursive=True)
    if not entries:
        return None
    files = sorted(entries, key=lambda entry: (-entry.size_bytes, entry.name))
    model_dir = _model_dir([entry.name for entry in entries])
    layers = _layers(model_run_uri) if model_run_uri else None
    return {
        "size_bytes": sum(entry.size_bytes for entry in entries),
        "files": [
            {"path": entry.name, "size_bytes": entry.size_bytes}
            for entry in files[:MAX_FILES]
        ],
        "files_left_out": max(0, len(files) - MAX_FILES),
        "model_dir": model_dir,
        "layers": None if layers is None else layers[:MAX_LAYERS],
        "layers_left_out": max(0, len(layers or ()) - MAX_LAYERS),
        **_of_saved_model(uri, model_dir, make_request),
    }


def _model_dir(names: list[str]) -> str | None:
    """Returns the folder of the SavedModel that is served, or the outermost."""
    found = [
        str(PurePosixPath(name).parent)
        for name in names
        if PurePosixPath(name).name == _SAVED_MODEL
    ]
    key = lambda name: (not name.startswith(_SERVING_DIR), name.count("/"))  # noqa: E731
    return min(found, key=key, default=None)


def _layers(model_run_uri: str) -> list[dict[str, Any]] | None:
    with local_copy(model_run_uri, (_FACTS_FILE,)) as folder:
        try:
            facts = json.loads((folder / _FACTS_FILE).read_bytes())
        except (FileNotFoundError, ValueError):  # The epochs document reports damage.
            return None
    return facts.get("layers") if isinstance(facts, dict) else None


def _of_saved_model(
    uri: str, model_dir: str | None, make_request: MakeRequest
) -> dict[str, Any]:
    meta_graph = None
    if model_dir is not None:
        with local_copy(os.path.join(uri, model_dir), (_SAVED_MODEL,)) as folder:
            meta_graph = _meta_graph(folder / _SAVED_MODEL)
    variables = _variables(meta_graph) if meta_graph else []
    trainable = [item for item in variables if item["trainable"]]
    return {
        "tensorflow_version": meta_graph.meta_info_def.tensorflow_version
        if meta_graph
        else None,
        "signatures": _signatures(meta_graph, make_request) if meta_graph else [],
        "variables": variables[:MAX_VARIABLES],
        "variables_left_out": max(0, len(variables) - MAX_VARIABLES),
        "parameters": sum(item["parameters"] or 0 for item in variables),
        "trainable_parameters": sum(item["parameters"] or 0 for item in trainable),
    }


def _meta_graph(path: Path) -> Any:
    """Returns the first ``MetaGraphDef`` of a SavedModel.

    TensorBoard has all of TensorFlow's messages but the outermost, whose field 2 it is.
    """
    from tensorboard.compat.proto import meta_graph_pb2

    data, at = memoryview(path.read_bytes()), 0
    with damage_explained("this model", path, "a SavedModel as TensorFlow writes it"):
        while at < len(data):
            tag, at = _varint(data, at)
            length, at = _varint(data, at)
            if tag & 7 == 2:
                if tag >> 3 == 2:
                    content = bytes(data[at : at + length])
                    return meta_graph_pb2.MetaGraphDef.FromString(content)
                at += length
        raise ValueError("no graph in it")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _signatures(meta_graph: Any, make_request: MakeRequest) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "inputs": (inputs := _tensors(signature.inputs)),
            "outputs": _tensors(signature.outputs),
            "example_request": make_request(name, inputs),
        }
        for name, signature in sorted(meta_graph.signature_def.items())
        if not name.startswith(_HIDDEN)
    ]


def _tensors(tensors: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "dtype": _dtype(item.dtype), "shape": _shape(item.tensor_shape)}
        for name, item in sorted(tensors.items())
    ]


def _variables(meta_graph: Any) -> list[dict[str, Any]]:
    """Returns the variables of the saved objects; none of a model of TensorFlow 1."""
    return [
        {
            "name": node.variable.name,
            "dtype": _dtype(node.variable.dtype),
            "shape": (shape := _shape(node.variable.shape)),
            "parameters": _size(shape),
            "trainable": node.variable.trainable,
        }
        for node in meta_graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]


def _size(shape: list[int | None] | None) -> int | None:
    if shape is None or None in shape:
        return None
    return math.prod(filter(None, shape))


def _dtype(number: int) -> str:
    """Returns a type's name as TensorFlow's ``DType.name`` has it."""
    from tensorboard.compat.proto import types_pb2

    name = types_pb2.DataType.Name(number).removeprefix("DT_").lower()
    names = {"float": "float32", "double": "float64", "half": "float16"}
    return names.get(name, name)


def _shape(shape: Any) -> list[int | None] | None:
    if shape.unknown_rank:
        return None
    return [None if size.size < 0 else size.size for size in shape.dim]
