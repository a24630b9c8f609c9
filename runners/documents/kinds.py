"""What each kind of document is made of; see ``sluice.node_kinds.DOCUMENTS``."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.documents import protos
from runners.documents.examples import read_examples, split_names
from runners.documents.images import samples
from runners.documents.mistakes import mistakes
from runners.documents.model import model
from sluice.mlmd_items import Artifact
from sluice.node_kinds import BASELINE, CANDIDATE
from sluice.privacy import Privacy
from sluice.record.parts import Artifacts
from sluice.storage.local_copy import local_copy

Content = Mapping[str, Any] | None
# Returns the lineage of an artifact, by its id.
LineageOf = Callable[[int], Mapping[str, Any]]


@dataclass(frozen=True)
class Source:
    """An artifact to describe.

    Attributes:
      item: the artifact.
      inputs: of the node that made it.
      properties: exec properties of the node.
      run_dir: folder of the run, with its ``config.json``.
      privacy: what may be shown.
      lineage_of: None if the lineage is not known.
    """

    item: Artifact
    inputs: Artifacts
    properties: Mapping[str, Any]
    run_dir: Path
    privacy: Privacy
    lineage_of: LineageOf | None = None


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
}


def content_of(kind: str, source: Source) -> Content:
    """Returns what a document says; None if there is nothing to say."""
    item = source.item
    match kind:
        case "lineage":
            return source.lineage_of(item.id) if source.lineage_of else None
        case "mistakes":
            return _mistakes(source)
        case "model":
            return model(item.uri)
        case "request":
            return _request(source)
        case "samples":
            given = [x.type for items in source.inputs.values() for x in items]
            return None if "Examples" in given else samples(item, source.privacy)
    with local_copy(item.uri, _FILES[kind]) as folder:
        return _content_of_files(kind, folder, source)


def _content_of_files(kind: str, folder: Path, source: Source) -> Content:
    sensitive = source.privacy.sensitive
    splits = json.loads(source.item.properties.get("split_names") or "[]")
    match kind:
        case "anomalies":
            found = protos.anomalies(folder, splits, sensitive)
            return {**found, "suggestions": _suggestions(source)}
        case "baseline_statistics":
            return protos.baseline_statistics(folder, sensitive)
        case "distances":
            return _read(folder / "distances.json")
        case "epochs":
            history = _read(folder / "history.json")
            training = _read(folder / "training.json")
            if history is None:
                return None
            epochs = range(1, 1 + max(map(len, history.values()), default=0))
            return {"epochs": [*epochs], "metrics": history, "training": training}
        case "ingestion":
            from components.tfrecord_gen.report import document_ingestion

            return document_ingestion(folder)
        case "metrics":
            return protos.metrics(folder)
        case "schema":
            return protos.schema(folder, sensitive)
        case _:
            return protos.statistics(folder, splits, sensitive)


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else None


def _suggestions(source: Source) -> list[dict[str, Any]] | None:
    """Returns what the statistics suggest to change in the schema; None if unknown."""
    config = source.run_dir / "config.json"
    inputs = source.inputs
    statistics, schema = inputs.get("statistics"), inputs.get("schema")
    if not (statistics and schema and config.exists()):
        return None
    # Imported here: in a pipeline built elsewhere the names may be other packages.
    from pipeline.config.expectations import expectations
    from pipeline.config.serialize import read_stored_config
    from schemas.diff.diff_schema import diff_schema
    from schemas.diff.statistics import observe_statistics, read_statistics
    from schemas.loader import load

    with local_copy(schema[0].uri, ("*.pbtxt",)) as folder:
        reviewed = load(next(folder.glob("*.pbtxt")))
    observed = observe_statistics(read_statistics(statistics[0].uri) or {})
    expected = expectations(read_stored_config(config))
    return [
        {key: item[key] for key in ("feature", "kind", "text", "refusal")}
        for change in diff_schema(reviewed, observed, expected).changes
        for item in [change.to_dict()]
    ]


def _mistakes(source: Source) -> Content:
    inputs = source.inputs
    # ML Metadata has one event of an artifact: a model that is its own baseline is only
    # found as such.
    models = inputs.get(CANDIDATE) or inputs.get(BASELINE)
    examples = inputs.get("examples")
    if not (models and examples):
        return None
    # TFX evaluates the eval split unless it is told otherwise.
    splits = json.loads(source.properties.get("example_splits") or "null") or ["eval"]
    return mistakes(models[0].uri, examples[0], splits, source.privacy)


def _request(source: Source) -> Content:
    """Returns the first record as a row for signatures that take tf.Examples.

    https://www.tensorflow.org/tfx/serving/api_rest#predict_api
    """
    for examples in source.inputs.get("examples", ()):
        splits = split_names(examples)
        record = next(read_examples(examples.uri, splits), None)
        if record is None or source.privacy.private:
            return None
        if set(record.features()).isdisjoint(source.privacy.sensitive):
            encoded = base64.b64encode(record.data).decode()
            return {"instances": [{"examples": {"b64": encoded}}]}
    return None
