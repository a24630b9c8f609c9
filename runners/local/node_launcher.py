"""TFX's launcher with clean output folders and resolved secrets.

When a run is resumed TFX reuses the execution of a killed node, with the files that it
left in the output folders: two shards of a killed ExampleGen were read together with
the new ones.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration.portable import launcher
from tfx.orchestration.portable.mlmd import execution_lib

from runners.local.beam_workers import prepare_beam
from sluice import secrets
from sluice.node_kinds import kind_of
from sluice.patches.tfx import open_no_port
from sluice.storage.storage import storage_for

_ERROR = "__execution_result__"
_MODULE_FILE, _MODULE_PATH = "module_file", "module_path"


class NodeLauncher(launcher.Launcher):
    """TFX's launcher; it empties output folders and opens no port."""

    def __init__(
        self,
        *,
        before_executor: Callable[[], None] = lambda: None,
        resolves_secrets: bool = False,
        **options: Any,
    ) -> None:
        """Creates the launcher of one node.

        Args:
          before_executor: called before the executor, when the cache key is known;
            not called for a cached node.
          resolves_secrets: whether secret references in the exec properties are
            resolved for the executor. TFX logs and stores the references.
          **options: of TFX's launcher.
        """
        super().__init__(**options)
        self._before_executor = before_executor
        if resolves_secrets and self._executor_operator is not None:
            operator: Any = self._executor_operator
            operator.run_executor = _resolving(operator.run_executor)

    def launch(self) -> Any:
        open_no_port()
        return super().launch()

    def _register_or_reuse_execution(
        self,
        metadata_handle: Any,
        contexts: list[Any],
        input_artifacts: Mapping[str, Sequence[Any]] | None = None,
        exec_properties: Mapping[str, Any] | None = None,
    ) -> Any:
        execution = super()._register_or_reuse_execution(
            metadata_handle, contexts, input_artifacts, exec_properties
        )
        if not execution_lib.is_execution_successful(execution):
            _begin_again(metadata_handle.store, execution, input_artifacts or {})
        return execution

    def _run_executor(self, execution_info: Any) -> Any:
        for artifacts in execution_info.output_dict.values():
            for artifact in artifacts:
                made_here = f"/{execution_info.execution_id}" in artifact.uri
                if made_here and not artifact.is_external:
                    _remove(artifact.uri)
        _remove(execution_info.tmp_dir)
        storage_for(execution_info.tmp_dir).make_folder(execution_info.tmp_dir)
        _remove(execution_info.execution_output_uri)
        module_file = execution_info.exec_properties.get(_MODULE_FILE)
        if isinstance(module_file, str) and module_file:
            name = _make_importable(os.path.abspath(module_file))
            kind = kind_of(self._pipeline_node.node_info.type.name)
            if name and kind.takes_module_path:
                execution_info.exec_properties[_MODULE_FILE] = None
                execution_info.exec_properties[_MODULE_PATH] = name
        self._before_executor()
        prepare_beam(self._executor_operator, execution_info.input_dict)
        return super()._run_executor(execution_info)


def _resolving(run_executor: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(execution_info: Any) -> Any:
        given = execution_info.exec_properties
        resolved = copy.copy(execution_info)
        resolved.exec_properties = secrets.resolve_exec_properties(given)
        output = run_executor(resolved)
        # TFX returns the exec properties with the outputs, and stores them once more.
        for key, value in list(output.execution_properties.items()):
            changed = given.get(key) != resolved.exec_properties.get(key)
            text = value.string_value
            if changed or secrets.redact(text) != text:
                del output.execution_properties[key]
        result = output.execution_result
        if result.result_message:
            result.result_message = secrets.redact(result.result_message)
        return output

    return run


def _make_importable(module_file: str) -> str | None:
    """Makes a user's module importable in this process and in Beam's workers.

    TFX would install a wheel for both. A module loaded from its file has a name that
    other processes cannot import.

    Returns:
      The module's name; None if another module of that name is found first.
    """
    folder, file = os.path.split(module_file)
    sys.path.append(folder)
    paths = [path for path in (os.environ.get("PYTHONPATH"), folder) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    importlib.invalidate_caches()
    name = file.removesuffix(".py")
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    with suppress(OSError):
        # Either path may contain links.
        if spec and spec.origin and os.path.samefile(spec.origin, module_file):
            return name
    return None


def _begin_again(store: Any, execution: Any, inputs: Mapping[str, Any]) -> None:
    """Sets a reused execution to running and stores its inputs in ML Metadata."""
    execution.last_known_state = metadata_store_pb2.Execution.RUNNING
    if _ERROR in execution.custom_properties:
        del execution.custom_properties[_ERROR]
    store.put_executions([execution])
    stored = store.get_events_by_execution_ids([execution.id])
    if any(event.type == metadata_store_pb2.Event.INPUT for event in stored):
        return
    events = []
    for key, artifacts in inputs.items():
        for index, artifact in enumerate(artifacts):
            event = metadata_store_pb2.Event(
                type=metadata_store_pb2.Event.INPUT,
                artifact_id=artifact.id,
                execution_id=execution.id,
            )
            event.path.steps.add().key = key
            event.path.steps.add().index = index
            events.append(event)
    if events:
        store.put_events(events)


def _remove(path: str) -> None:
    if path:
        storage_for(path).delete_tree(path)
