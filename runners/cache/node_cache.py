"""Looks up cached outputs of a node and checks that they are still valid.

Replaces ``tfx.orchestration.portable.cache_utils`` in TFX's launcher. The key is our
own, see ``runners.cache.key``. In addition:

* A baseline that is the candidate itself is no change. Otherwise the first unchanged
  run after a push would evaluate the model against itself.
* A push is valid while its version is the newest and undamaged. TFX checks only the
  artifact, never the serving directory.
* Accepted data is valid while the baseline store has it: AcceptData has no output.
* Outputs are valid while they match the contents that ``runners.local.node_launcher``
  recorded. TFX only checks that the directory exists. Some artifacts are always empty:
  a PushedModel, a blessing without thresholds, an empty analyzer cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format, message

from runners.cache.history import (
    CACHE_CONTEXT,
    PARTS_PROPERTY,
    keyed_executions,
    successful_executions,
)
from runners.cache.key import (
    InputArtifact,
    NodeFacts,
    edited_since,
    is_own_baseline,
    key_of,
    key_parts,
    without_baseline,
)
from sluice.errors import ServingError, UsageError
from sluice.mlmd_items import plain_properties
from sluice.node_kinds import kind_of
from sluice.storage.contents import Contents
from sluice.storage.storage import is_remote


class WouldRun(Exception):
    """The node is not in the cache; raised by a lookup that must not execute it."""


class NodeCache:
    """Replacement of TFX's ``cache_utils`` for one node.

    Attributes:
      parts: the parts of the node's key; None before the lookup.
      key: their digest.
      reason: why no earlier outputs were used; None if they were, or before the lookup.
      facts: the launcher's data on the node; None before the lookup.
    """

    def __init__(
        self,
        stock: Any,
        *,
        roots: Sequence[Path],
        driver: str | None = None,
        use_cache: bool = True,
        plan: bool = False,
        stand_in: bool = False,
    ) -> None:
        """Creates the cache of one node.

        Args:
          stock: ``tfx.orchestration.portable.cache_utils``.
          roots: of the code to follow; see ``key.code_roots``.
          driver: class path of the node's custom driver, which the launcher does not
            pass.
          use_cache: false to execute in any case.
          plan: whether a node that is not in the cache raises ``WouldRun``.
          stand_in: whether the outputs of the last execution, if there is one, are used
            instead of raising, so that downstream nodes can be looked up too; it sets
            ``reason``.
        """
        self._stock = stock
        self._roots = roots
        self._driver = driver
        self._use_cache = use_cache
        self._plan = plan
        self._stand_in = stand_in
        self.facts: NodeFacts | None = None
        self.parts: dict[str, Any] | None = None
        self.key: str | None = None
        self.reason: str | None = None

    def get_cache_context(
        self,
        *,
        metadata_handle: Any,
        pipeline_node: Any,
        pipeline_info: Any,
        executor_spec: Any = None,
        input_artifacts: Mapping[str, Sequence[Any]] | None = None,
        output_artifacts: Mapping[str, Sequence[Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Returns the ML Metadata context of the cache key.

        Raises:
          WouldRun: only planned, and the node does not use the cache.
          ConfigError: code that the node runs is not valid Python.
          UsageError: the code was edited since the graph was compiled.
        """
        self.facts = NodeFacts(
            pipeline=pipeline_info.id,
            id=pipeline_node.node_info.id,
            kind=pipeline_node.node_info.type.name,
            executor=_executor_of(executor_spec),
            driver=self._driver,
            properties={k: _plain(v) for k, v in (parameters or {}).items()},
            inputs=_inputs_of(input_artifacts or {}),
            outputs=_outputs_of(output_artifacts or {}),
        )
        self.parts = key_parts(self.facts, self._roots)
        if edited := edited_since(self.facts, self._roots):
            raise UsageError(
                f"{self.facts.id} was not run: its code was edited during the run",
                examples=edited,
                hint="run again; finished, unchanged nodes are cached",
            )
        self.key = key_of(self.parts)
        if not pipeline_node.execution_options.caching_options.enable_cache:
            # The launcher does not look up outputs then.
            self._miss("its cache is turned off")
        return _register(metadata_handle, self.key, self.parts)

    def get_cached_outputs(
        self, *, metadata_handle: Any, cache_context: Any
    ) -> dict[str, list[Any]] | None:
        """Returns the outputs of an earlier execution, None if none may be used.

        Raises:
          WouldRun: only planned, and there are none.
        """
        try:
            return self._find_outputs(metadata_handle, cache_context)
        except WouldRun:
            last = self._last_outputs(metadata_handle) if self._stand_in else None
            if last is None:
                raise
            return last

    def _last_outputs(self, metadata_handle: Any) -> dict[str, list[Any]] | None:
        assert self.facts is not None
        store = metadata_handle.store
        for execution, _ in keyed_executions(store, self.facts.pipeline, self.facts.id):
            return self._stock._get_outputs_of_execution(metadata_handle, execution.id)
        return None

    def _find_outputs(
        self, metadata_handle: Any, cache_context: Any
    ) -> dict[str, list[Any]] | None:
        if not self._use_cache:
            self._miss("told not to use the cache")
            return None
        if self.facts and not still_accepted(self.facts):
            self._miss("the baseline store does not hold this data")
            return None
        newest_problem = None
        for execution in self._candidates(metadata_handle.store, cache_context):
            # The same in TFX 1.16 and 1.21; it returns None unless all are live.
            outputs = self._stock._get_outputs_of_execution(
                metadata_handle, execution.id
            )
            problem = _problem_with(outputs)
            if problem is None:
                self.reason = None
                return outputs
            newest_problem = newest_problem or problem
        self._miss(
            f"its outputs cannot be used again: {newest_problem}"
            if newest_problem
            else "no earlier execution has the same key"
        )
        return None

    def _candidates(self, store: Any, cache_context: Any) -> Iterable[Any]:
        """Returns the executions whose outputs may be used, newest first."""
        if self.facts is None or not is_own_baseline(self.facts.inputs):
            return successful_executions(store, cache_context)
        return (
            execution
            for execution, parts in keyed_executions(
                store, self.facts.pipeline, self.facts.id
            )
            if key_of(without_baseline(parts)) == self.key
        )

    def _miss(self, reason: str) -> None:
        self.reason = reason
        if self._plan:
            raise WouldRun(reason)


def still_accepted(facts: NodeFacts) -> bool:
    """Whether the baseline store has the data that an ``AcceptData`` node accepted.

    The node has no outputs to check. True for every other node.
    """
    if not kind_of(facts.kind).accepts_data:
        return True
    from components.accept_data.data_baselines import holds
    from components.tfrecord_gen.report import Report

    try:
        report = Report.load(facts.inputs["quarantine"][0].uri)
        return holds(str(facts.properties["baseline_store"]), report)
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
    except (ServingError, OSError):
        return False  # Pusher reports the error.


def _problem_with(outputs: Mapping[str, Sequence[Any]] | None) -> str | None:
    """Returns why outputs cannot be used again, None if they can."""
    from tfx.types import artifact_utils

    if outputs is None:
        return "they were not published whole"
    try:
        artifact_utils.verify_artifacts(dict(outputs))
    except RuntimeError as error:
        return str(error)
    for artifact in (item for items in outputs.values() for item in items):
        if artifact.type_name == "PushedModel" and not still_served(artifact):
            return "what it pushed is no longer the newest version, or is damaged"
        recorded = Contents.recorded(plain_properties(artifact.mlmd_artifact))
        if damage := recorded and recorded.damage(artifact.uri):
            return f"{artifact.uri} {damage}"
    return None


def _register(metadata_handle: Any, key: str, parts: Mapping[str, Any]) -> Any:
    """Returns the context of a key; other processes may create it too."""
    from tfx.orchestration.portable.mlmd import context_lib

    context = context_lib.register_context_if_not_exists(
        metadata_handle=metadata_handle,
        context_type_name=CACHE_CONTEXT,
        context_name=key,
    )
    if PARTS_PROPERTY in context.custom_properties:
        return context
    text = json.dumps(parts, sort_keys=True)
    context.custom_properties[PARTS_PROPERTY].string_value = text
    metadata_handle.store.put_contexts([context])
    return context


def _executor_of(spec: Any) -> dict[str, Any]:
    """Returns the part of an executor's specification that affects its result."""
    if hasattr(spec, "image"):
        return {
            "image": spec.image,
            "commands": [_plain(item) for item in spec.commands],
            "args": [_plain(item) for item in spec.args],
        }
    # Beam's specification wraps Python's; its arguments change no result.
    spec = getattr(spec, "python_executor_spec", spec)
    if not hasattr(spec, "class_path"):
        return {}
    return {"class": spec.class_path, "flags": list(spec.extra_flags)}


def _inputs_of(
    artifacts: Mapping[str, Sequence[Any]],
) -> dict[str, list[InputArtifact]]:
    return {
        key: [
            InputArtifact(item.id, item.uri, bool(item.is_external)) for item in items
        ]
        for key, items in artifacts.items()
    }


def _outputs_of(artifacts: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    return {
        key: [_output_of(item) for item in items] for key, items in artifacts.items()
    }


def _output_of(artifact: Any) -> dict[str, Any]:
    """Returns type and properties of an output, and its URI if the user set it."""
    proto = artifact.mlmd_artifact
    values = {**proto.properties, **proto.custom_properties}
    values.pop("name", None)
    properties = {key: _value(value) for key, value in values.items()}
    found = {"type": artifact.type_name, "properties": properties}
    return {**found, "uri": artifact.uri} if artifact.is_external else found


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else _plain(getattr(value, kind))


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it."""
    if isinstance(value, message.Message):
        return json_format.MessageToDict(value, preserving_proto_field_name=True)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
