"""TFX's cache for one node: what does not count, and outputs that are still valid.

Replaces ``tfx.orchestration.portable.cache_utils`` in TFX's launcher. The key is TFX's:
the node's class, its inputs and its exec properties, one of which is the fingerprint
of its code and files (``pipeline.graph.create_pipeline``). In addition:

* The model that a warm start has found is no change: each training would make a newer
  one, and the next run would train again, for ever.
* A baseline that is the candidate itself does not count, nor its description: it is as
  none. Otherwise a run after a push would judge the model against itself.
* Where the pipelines of a node run, in its process or on an engine, does not count.
* What an Importer has registered may change: its content counts.
* A push is valid while its version is the newest and undamaged. TFX checks only the
  artifact, never the serving directory.
* Accepted data is valid while the baseline store has it: AcceptData has no output.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfx.orchestration.portable import cache_utils

from sluice import code_fingerprint
from sluice.errors import SluiceError, UsageError
from sluice.mlmd_items import newest_first
from sluice.node_kinds import (
    ABOUT_BASELINE,
    BASELINE,
    CANDIDATE,
    FIRST_WEIGHTS,
    kind_of,
)
from sluice.patches.tfx import outputs_of_execution
from sluice.storage import digest
from sluice.storage.storage import is_remote, storage_for

_TRAINING = "pipeline.training.run_fn.run_fn"
_SEARCH = "pipeline.training.tuning.tuner_fn"
# Beam's option that names a runner of ours.
_OUR_RUNNERS = "--runner=sluice."


class WouldRun(Exception):
    """The node is not in the cache; raised by a lookup that must not execute it."""


class NodeCache:
    """Replacement of TFX's ``cache_utils`` for one node.

    Attributes:
      key: TFX's cache key; None before the lookup.
      reason: why no earlier outputs were used; None if they were, or before the lookup.
      inputs: the artifacts that count, by input key.
      properties: the exec properties that count.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        use_cache: bool = True,
        plan: bool = False,
        stand_in: int | None = None,
    ) -> None:
        """Creates the cache of one node.

        Args:
          roots: the directories with the pipeline's own code.
          use_cache: false to execute in any case.
          plan: whether a node that is not in the cache raises ``WouldRun``.
          stand_in: the execution whose outputs are used instead of raising, so that
            downstream nodes can be looked up too; ``reason`` is set then.
        """
        self._roots = roots
        self._use_cache = use_cache
        self._plan = plan
        self._stand_in = stand_in
        self.key: str | None = None
        self.reason: str | None = None
        self.inputs: Mapping[str, Sequence[Any]] = {}
        self.properties: Mapping[str, Any] = {}
        self._kind = ""

    def get_cache_context(
        self,
        *,
        pipeline_node: Any,
        input_artifacts: Mapping[str, Sequence[Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        executor_spec: Any = None,
        **others: Any,
    ) -> Any:
        """Returns the ML Metadata context of the cache key.

        Raises:
          WouldRun: only planned, and the node does not use the cache.
          UsageError: the code was edited since the graph was compiled.
        """
        self._kind = pipeline_node.node_info.type.name
        # Those of a condition are hidden: it holds, whatever else they say.
        specs = pipeline_node.inputs.inputs
        given = {
            key: items
            for key, items in (input_artifacts or {}).items()
            if not specs[key].hidden
        }
        self.inputs, self.properties = what_counts(given, parameters or {})
        if edited := edited_since(self.properties, self._roots):
            raise UsageError(
                f"{pipeline_node.node_info.id} was not run: its code was edited during "
                "the run",
                examples=edited,
                hint="run again; finished, unchanged nodes are cached",
            )
        context = cache_utils.get_cache_context(
            pipeline_node=pipeline_node,
            executor_spec=_without_beam_args(executor_spec),
            input_artifacts=self.inputs,
            parameters={**self.properties, **_contents(self.inputs)},
            **others,
        )
        self.key = context.name
        if not pipeline_node.execution_options.caching_options.enable_cache:
            # The launcher does not look up outputs then.
            self._miss("its cache is turned off")
        return context

    def get_cached_outputs(
        self, *, metadata_handle: Any, cache_context: Any
    ) -> dict[str, list[Any]] | None:
        """Returns the outputs of an earlier execution, None if none may be used.

        Raises:
          WouldRun: only planned, and there are none.
        """
        outputs = cache_utils.get_cached_outputs(
            metadata_handle=metadata_handle, cache_context=cache_context
        )
        reason = None
        if not self._use_cache:
            reason = "told not to use the cache"
        elif outputs is None:
            known = metadata_handle.store.get_executions_by_context(cache_context.id)
            done = any(item.last_known_state in (3, 5) for item in known)
            reason = "its outputs are missing" if done else "its key is new"
        elif not still_accepted(self._kind, self.inputs, self.properties):
            reason = "this data is not the newest in the baseline store"
        elif not all(map(still_served, outputs.get("pushed_model", ()))):
            reason = "what it pushed is no longer the newest version, or is damaged"
        if reason is None:
            return outputs
        if self._stand_in is not None:
            self.reason = reason
            live = outputs_of_execution(metadata_handle, self._stand_in)
            if live is not None:
                return live
        self._miss(reason)
        return None

    def _miss(self, reason: str) -> None:
        self.reason = reason
        if self._plan:
            raise WouldRun(reason)


def what_counts(
    inputs: Mapping[str, Sequence[Any]], properties: Mapping[str, Any]
) -> tuple[dict[str, Sequence[Any]], dict[str, Any]]:
    """Returns the input artifacts and exec properties that are part of the key."""
    inputs, properties = dict(inputs), dict(properties)
    if properties.get("run_fn") == _TRAINING or properties.get("tuner_fn") == _SEARCH:
        inputs.pop(FIRST_WEIGHTS, None)
    baseline = [artifact.id for artifact in newest_first(inputs.get(BASELINE, ()))]
    candidate = [artifact.id for artifact in inputs.get(CANDIDATE, ())]
    is_own = bool(baseline) and baseline[:1] == candidate
    if is_own or not baseline:
        inputs.pop(BASELINE, None)
        about = properties.get(ABOUT_BASELINE) or "{}"
        if is_own or not json.loads(about).get("skipped"):
            properties.pop(ABOUT_BASELINE, None)
    return inputs, properties


def _without_beam_args(spec: Any) -> Any:
    """Returns an executor's spec without what only says where its pipelines run."""
    args = getattr(spec, "beam_pipeline_args_placeholders", ())
    if not any(x.value.string_value.startswith(_OUR_RUNNERS) for x in args):
        return spec
    changed = type(spec)()
    changed.CopyFrom(spec)
    for field in ("beam_pipeline_args", "beam_pipeline_args_placeholders"):
        changed.ClearField(field)
    return changed


def _contents(inputs: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Returns the digests of external artifacts, which other programs write."""
    return {
        f"content of {key} {number}": digest.of_path(item.uri)
        for key, items in inputs.items()
        for number, item in enumerate(items)
        if item.is_external and storage_for(item.uri).exists(item.uri)
    }


def edited_since(properties: Mapping[str, Any], roots: Sequence[Path]) -> list[str]:
    """Returns the modules that were edited since the fingerprint was computed.

    It is computed when the graph is compiled; the node imports the code when it runs,
    maybe much later. Empty for a node without fingerprint.
    """
    try:
        code = json.loads(properties[code_fingerprint.PROPERTY])["code"]
    except (KeyError, TypeError, ValueError):
        return []
    files = {name: code_fingerprint.source_file(name, roots) for name in code}
    return [
        name
        for name, path in files.items()
        if path is not None and digest.of_file(path) != code[name]
    ]


def still_accepted(
    kind: str, inputs: Mapping[str, Sequence[Any]], properties: Mapping[str, Any]
) -> bool:
    """Whether an ``AcceptData`` node's data is the newest in the baseline store.

    The node has no outputs to check. True for every other node.
    """
    if not kind_of(kind).accepts_data:
        return True
    from components.data_baselines import holds
    from components.tfrecord_gen.ingestion_report import Report

    try:
        report = Report.load(inputs["quarantine"][0].uri)
        return holds(str(properties["baseline_store"]), report)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False  # The node reports the error.


def still_served(pushed_model: Any) -> bool:
    """Whether a PushedModel's version is the newest one, or nothing was pushed.

    True for a push to anything but a directory, which cannot be checked.
    """
    if pushed_model.get_int_custom_property("pushed") != 1:
        return True
    destination = pushed_model.get_string_custom_property("pushed_destination")
    pushed = pushed_model.get_string_custom_property("digest")
    by_another = not pushed and is_remote(destination)
    if by_another or destination.startswith("projects/"):
        return True
    # Imported here: foreign pipelines may hide `serving` and rarely push.
    from serving.model_store import store_at

    try:
        newest = store_at(os.path.dirname(destination)).newest()
        if newest is None or Path(newest.uri) != Path(destination):
            return False
        if not pushed and newest.digest is None:
            return True  # By another Pusher, which keeps no record.
        return pushed in ("", newest.digest) and newest.is_intact()
    except (SluiceError, OSError):
        return False  # Pusher reports the error.
