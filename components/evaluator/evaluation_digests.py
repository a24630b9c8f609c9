"""Digests of the models and data of an evaluation: its ``evaluated.json``.

By them an Evaluator finds an earlier evaluation of its baseline on the same data, among
the folders beside its own (``Evaluator/evaluation/<execution id>``). Only local
artifacts are supported; on Vertex AI each run has a folder of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfx.types import artifact_utils, standard_component_specs

from sluice.storage import atomic, digest
from sluice.storage.storage import is_remote
from sluice.tfrecords import tfrecord

CANDIDATE, BASELINE = "candidate", "baseline"

_FILE = "evaluated.json"
_MODELS = {
    CANDIDATE: standard_component_specs.MODEL_KEY,
    BASELINE: standard_component_specs.BASELINE_MODEL_KEY,
}


@dataclass(frozen=True)
class EvaluationDigests:
    """Digests of everything that an evaluation depends on.

    Attributes:
      data: digest of the evaluated splits, the other inputs but the models, and the
        exec properties, EvalConfig included.
      models: digest of each model's files, by ``candidate`` and ``baseline``.
    """

    data: str
    models: Mapping[str, str]

    def save(self, folder: Path, baseline_from: Path | None = None) -> None:
        """Writes ``evaluated.json``, with the digests of metrics and plots.

        Args:
          folder: of a finished evaluation.
          baseline_from: folder of the evaluation that the baseline's metrics were
            copied from; None if they were computed.
        """
        content = {
            "data": self.data,
            "models": self.models,
            "baseline_from": str(baseline_from) if baseline_from else None,
            "metrics": _metrics_in(folder),
        }
        atomic.write_json(folder / _FILE, content)


def digest_inputs(
    inputs: Mapping[str, Sequence[Any]], properties: Mapping[str, Any]
) -> EvaluationDigests | None:
    """Returns the digests of an Evaluator's inputs.

    None if an input is remote, or there is no model.

    Args:
      inputs: artifacts by key, as TFX passes them to the executor.
      properties: the exec properties.
    """
    splits = json.loads(properties.get("example_splits") or "null") or ["eval"]
    uris = {key: [item.uri for item in items] for key, items in inputs.items() if items}
    is_local = not any(is_remote(uri) for paths in uris.values() for uri in paths)
    if not is_local or _MODELS[CANDIDATE] not in uris:
        return None
    examples = standard_component_specs.EXAMPLES_KEY
    uris[examples] = [
        uri
        for split in splits
        for uri in artifact_utils.get_split_uris(inputs[examples], split)
    ]
    contents = {key: [_content(Path(uri)) for uri in uris[key]] for key in uris}
    models = {
        model_name: contents.pop(key)[0]
        for model_name, key in _MODELS.items()
        if key in contents
    }
    data = json.dumps([contents, dict(properties)], sort_keys=True, default=str)
    return EvaluationDigests(digest.of_bytes(data.encode()), models)


def find_reusable(folder: Path, wanted: EvaluationDigests) -> tuple[Path, str] | None:
    """Returns an undamaged earlier evaluation with the metrics of the baseline.

    Args:
      folder: of the new evaluation; earlier ones are beside it.
      wanted: digests of the new evaluation.

    Returns:
      The folder and the model's name in it, ``candidate`` or ``baseline``; None if
      there is no such evaluation.
    """
    for path in sorted(folder.parent.iterdir()):
        try:
            found = json.loads((path / _FILE).read_bytes())
            if found["data"] == wanted.data and found["metrics"] == _metrics_in(path):
                for model_name, model in found["models"].items():
                    if model == wanted.models[BASELINE]:
                        return path, model_name
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # Unfinished or damaged.
    return None


def _metrics_in(folder: Path) -> dict[str, str]:
    shards = [tfrecord.shards(folder, kind) for kind in ("metrics", "plots")]
    return {path.name: digest.of_file(path) for paths in shards for path in paths}


def _content(path: Path) -> str:
    return digest.of_file(path) if path.is_file() else digest.of_tree(path)
