"""Writes the documents of a node's artifacts, and describes models."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from runners.documents import protos
from runners.documents.examples import split_names
from runners.documents.images import samples
from runners.documents.mistakes import mistakes
from runners.documents.residuals import residuals
from sluice.mlmd_items import Artifact, newest_first
from sluice.model_facts import SERVING_DIR
from sluice.node_kinds import BASELINE, CANDIDATE, DOCUMENTS, NOT_DESCRIBED
from sluice.privacy import Privacy
from sluice.record.parts import Artifacts, DocumentRecord, NodeEnd
from sluice.secrets import redact
from sluice.storage import atomic
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for

Content = Mapping[str, Any] | None
# Returns the lineage of an artifact, by its id.
LineageOf = Callable[[int], Mapping[str, Any]]

# The files that are read for a kind, as patterns.
_FILES = {
    "anomalies": ("SchemaDiff.pb",),
    "baseline_statistics": ("FeatureStats.pb", "record.json"),
    "distances": ("distances.json",),
    "epochs": ("history.json", "training.json"),
    "ingestion": ("report.json",),
    "metrics": ("metrics*", "plots*"),
    "schema": ("*.pbtxt",),
    "statistics": ("FeatureStats.pb",),
    "trials": ("trials.json",),
}


def write_documents(
    end: NodeEnd,
    run_dir: Path,
    folder: Path,
    properties: Mapping[str, Any],
    *,
    lineage_of: LineageOf | None = None,
    on_error: Callable[[], None] = lambda: None,
) -> None:
    """Writes ``<artifact id>.<kind>.json`` for each kind of content of each output.

    A cached node only writes documents that do not exist, or were written when the
    config allowed to show other data. One that cannot be written becomes a note.

    Args:
      end: of a node, which gets references to the documents, relative to ``run_dir``.
      run_dir: the run's folder, whose ``config.json`` says what may be shown.
      folder: where the documents are.
      properties: exec properties of the node.
      lineage_of: None if the lineage is not known.
      on_error: called while the exception is handled.
    """
    described = [
        (kind, key, artifact)
        for key, items in end.outputs.items()
        for artifact in items
        for kind in DOCUMENTS.get(artifact.type, ())
        if end.node not in NOT_DESCRIBED
    ]
    for kind, key, artifact in described:
        path = folder / f"{artifact.id}.{kind}.json"
        try:
            privacy = _privacy(run_dir)
            head = {"kind": kind, "output": key, "id": artifact.id, "uri": artifact.uri}
            head["privacy"] = asdict(privacy)
            if not (end.state == "cached" and _is_same(path, head)):
                content = _content(
                    kind, artifact, end.inputs, properties, privacy, lineage_of
                )
                if content is None:
                    continue
                folder.mkdir(parents=True, exist_ok=True)
                atomic.write_json(path, {**head, **content}, indent=None)
        except Exception as error:
            on_error()
            text = f"{end.node}: its outputs could not be described: {kind} of "
            end.notes.append(redact(f"{text}{artifact.uri}: {error}").splitlines()[0])
            continue
        relative = os.path.relpath(path, run_dir)
        end.documents.append(DocumentRecord(kind, end.node, relative))


def _content(
    kind: str,
    artifact: Artifact,
    inputs: Artifacts,
    properties: Mapping[str, Any],
    privacy: Privacy,
    lineage_of: LineageOf | None,
) -> Content:
    """Returns what a document says; None if there is nothing to say."""
    match kind:
        case "lineage":
            return lineage_of(artifact.id) if lineage_of else None
        case "mistakes":
            return _of_predictions(mistakes, inputs, properties, privacy)
        case "residuals":
            return _of_predictions(residuals, inputs, properties, privacy)
        case "model":
            return model(artifact.uri)
        case "samples":
            given = [x.type for items in inputs.values() for x in items]
            return None if "Examples" in given else samples(artifact, privacy)
    splits = split_names(artifact)
    with local_copy(artifact.uri, _FILES[kind]) as folder:
        match kind:
            case "anomalies":
                return protos.anomalies(folder, splits, privacy.sensitive)
            case "baseline_statistics":
                return protos.baseline_statistics(folder, privacy.sensitive)
            case "distances" | "trials":
                return _read(folder / f"{kind}.json")
            case "epochs":
                return _epochs(folder)
            case "ingestion":
                from components.tfrecord_gen.ingestion_report import document_ingestion

                return document_ingestion(folder)
            case "metrics":
                return protos.metrics(folder)
            case "schema":
                return protos.schema(folder, privacy.sensitive)
            case _:
                return protos.statistics(folder, splits, privacy.sensitive)


def _epochs(folder: Path) -> Content:
    if (history := _read(folder / "history.json")) is None:
        return None
    epochs = range(1, 1 + max(map(len, history.values()), default=0))
    training = _read(folder / "training.json")
    return {"epochs": [*epochs], "metrics": history, "training": training}


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else None


def _of_predictions(
    describe: Callable[..., Content],
    inputs: Artifacts,
    properties: Mapping[str, Any],
    privacy: Privacy,
) -> Content:
    # ML Metadata has one event of an artifact: a model that is its own baseline is only
    # found as such.
    models = [*inputs.get(CANDIDATE, ()), *newest_first(inputs.get(BASELINE, ()))[:1]]
    uris = [*dict.fromkeys(model.uri for model in models)]
    examples = inputs.get("examples")
    if not (uris and examples):
        return None
    # TFX evaluates the eval split unless it is told otherwise.
    splits = json.loads(properties.get("example_splits") or "null") or ["eval"]
    return describe(uris, examples[0], splits, privacy)


def _is_same(path: Path, head: Mapping[str, Any]) -> bool:
    """Whether a document exists, of this artifact and with the same data shown."""
    try:
        written = json.loads(path.read_bytes())
        return head.items() <= written.items()
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def _privacy(run_dir: Path) -> Privacy:
    config = run_dir / "config.json"
    if not config.exists():
        return Privacy()
    # Imported here: in a pipeline built elsewhere the name may be another package.
    from pipeline.config.serialize import privacy_of

    return privacy_of(config)


_SAVED_MODEL = "saved_model.pb"
# TensorFlow makes signatures of its own, such as "__saved_model_init_op".
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
    served = SERVING_DIR if SERVING_DIR in folders else folders[0]
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
