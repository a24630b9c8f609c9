"""Digests of the models and data of an evaluation: its ``evaluated.json``.

The evaluations of a node lie side by side (``Evaluator/evaluation/<execution id>``), so
an earlier one is found there, by the content of the model and of everything else that
its metrics depend on. Nothing is found where each run has a folder of its own, as on
Vertex AI, and nothing is looked for where artifacts are not local files.
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
    """What an evaluation is of.

    Attributes:
      data: digest of all that a model's metrics depend on beside the model: the
        evaluated splits, other inputs, the EvalConfig and the other exec properties.
      models: digest of each model's files, by ``candidate`` and ``baseline``.
    """

    data: str
    models: Mapping[str, str]

    def save(self, folder: Path, baseline_from: Path | None = None) -> None:
        """Writes it into a finished evaluation, with the digests of its metrics.

        Args:
          folder: the evaluation.
          baseline_from: the one that the baseline's metrics are of, if they were not
            computed.
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
    """Returns what an Evaluator will evaluate.

    None if its inputs are not local, or predictions without a model.

    Args:
      inputs: artifacts by key, as TFX gives them to the executor.
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
    """Returns an undamaged evaluation that has measured the wanted baseline.

    Args:
      folder: of the new evaluation; the earlier ones lie beside it.
      wanted: what is about to be evaluated.

    Returns:
      The evaluation and what the model was in it; None if there is none.
    """
    for path in sorted(folder.parent.iterdir()):
        try:
            found = json.loads((path / _FILE).read_bytes())
            if found["data"] == wanted.data and found["metrics"] == _metrics_in(path):
                for model_name, model in found["models"].items():
                    if model == wanted.models[BASELINE]:
                        return path, model_name
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # Not finished, of before there was such a file, or damaged.
    return None


def _metrics_in(folder: Path) -> dict[str, str]:
    shards = tfrecord.shards(folder, "metrics")
    return {path.name: digest.of_file(path) for path in shards}


def _content(path: Path) -> str:
    return digest.of_file(path) if path.is_file() else digest.of_tree(path)
