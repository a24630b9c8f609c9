"""When a node's earlier outputs may stand for a new execution.

TFX's own rule, with two corrections:

* A baseline that is the candidate itself counts as no baseline. Otherwise the first
  unchanged run after a push evaluates the model against itself.
* A push counts only while what it pushed is still the newest version, undamaged.
  TFX looks at the artifact and never at the serving directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serving.model_store import ModelStore

CANDIDATE = "model"
BASELINE = "baseline_model"


class NodeCache:
    """Stands in for ``tfx.orchestration.portable.cache_utils`` in the launcher."""

    def __init__(self, stock: Any) -> None:
        self._stock = stock

    def get_cache_context(
        self, *, input_artifacts: Mapping[str, Sequence[Any]], **arguments: Any
    ) -> Any:
        """Returns the ML Metadata context that stands for the cache key."""
        return self._stock.get_cache_context(
            input_artifacts=inputs_of_key(input_artifacts), **arguments
        )

    def get_cached_outputs(self, **arguments: Any) -> Any:
        """Returns the outputs of an earlier execution, None if none may be used."""
        outputs = self._stock.get_cached_outputs(**arguments)
        for artifact in (outputs or {}).get("pushed_model", []):
            if not still_served(artifact):
                return None
        return outputs


def inputs_of_key(
    input_artifacts: Mapping[str, Sequence[Any]],
) -> dict[str, Sequence[Any]]:
    """Returns the inputs that the cache key is made of."""
    inputs = dict(input_artifacts)
    baseline = [artifact.id for artifact in inputs.get(BASELINE, [])]
    if baseline in ([], [artifact.id for artifact in inputs.get(CANDIDATE, [])]):
        inputs.pop(BASELINE, None)
    return inputs


def still_served(pushed_model: Any) -> bool:
    """Whether a PushedModel's version is still the newest one, or was never pushed."""
    if pushed_model.get_int_custom_property("pushed") != 1:
        return True
    destination = Path(pushed_model.get_string_custom_property("pushed_destination"))
    newest = ModelStore(destination.parent).newest()
    if newest is None or newest.path != destination:
        return False
    return newest.digest is None or newest.is_intact()
