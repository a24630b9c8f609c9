"""Compares a node's cache key with earlier ones: what has changed since.

The parts of a key are stored as JSON in ML Metadata, in the cache context of each
execution. TFX is not imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ml_metadata.proto import metadata_store_pb2

from sluice.json_paths import flatten
from sluice.node_kinds import ABOUT_BASELINE, BASELINE

PARTS_PROPERTY = "sluice_parts"
CACHE_CONTEXT = "execution_cache"

_SUCCESSFUL = (
    metadata_store_pb2.Execution.COMPLETE,
    metadata_store_pb2.Execution.CACHED,
)
_MAX_SHOWN = 60
_BEFORE_DIFFERENCE = 20
_MISSING = object()


def last_parts(
    store: Any, pipeline_id: str, node_id: str
) -> tuple[dict[str, Any], Any, str] | None:
    """Returns the parts of the node's last successful execution that has a key.

    Returns:
      The parts, the execution and its run id; None if there is no such execution.
    """
    for execution, parts in keyed_executions(store, pipeline_id, node_id):
        contexts = store.get_contexts_by_execution(execution.id)
        runs = [item.name for item in contexts if item.type == "pipeline_run"]
        return parts, execution, runs[0] if runs else ""
    return None


def keyed_executions(
    store: Any, pipeline_id: str, node_id: str
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yields a node's successful executions and the parts of their keys, newest first.

    The newest has the highest id: the clock may have been set back.
    """
    name = f"{pipeline_id}.{node_id}"
    node = store.get_context_by_type_and_name("node", name)
    for execution in successful_executions(store, node) if node else ():
        for context in store.get_contexts_by_execution(execution.id):
            if context.type == CACHE_CONTEXT:
                text = context.custom_properties[PARTS_PROPERTY].string_value
                if text:
                    yield execution, json.loads(text)


def successful_executions(store: Any, context: Any) -> list[Any]:
    """Returns the successful executions in a context, newest first."""
    found = store.get_executions_by_context(context.id)
    return sorted(
        (item for item in found if item.last_known_state in _SUCCESSFUL),
        key=lambda item: item.id,
        reverse=True,
    )


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns a line per difference between the parts of two keys; values are cut."""
    return [
        line
        for part, compare in _COMPARE.items()
        for line in compare(before.get(part, {}), now.get(part, {}))
    ]


def _code(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, old, new in _differences(before, now):
        if old is _MISSING:
            yield f"code: {name} is new"
        elif new is _MISSING:
            yield f"code: {name} is no longer used"
        elif new.startswith("unknown "):
            yield f"code: {name} has no file, so the node always runs"
        else:
            yield f"code: {name} changed"


def _files(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for _, old, new in _differences(before, now):
        if old is _MISSING:
            yield f"file {new['name']}: is new"
        elif new is _MISSING:
            yield f"file {old['name']}: is gone"
        elif old["digest"] != new["digest"]:
            yield f"file {new['name']}: content changed"


def _properties(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    about = [values.get(ABOUT_BASELINE, _MISSING) for values in (before, now)]
    if all(item is _MISSING or _is_about_baseline(item) for item in about):
        yield from _about_baseline(*about)
        before, now = (
            {key: item for key, item in values.items() if key != ABOUT_BASELINE}
            for values in (before, now)
        )
    for name, old, new in _differences(flatten(before), flatten(now)):
        yield f"property {name.removeprefix('custom_config.')}: {_change(old, new)}"


def _is_about_baseline(value: Any) -> bool:
    return isinstance(value, Mapping) and "skipped" in value


def _about_baseline(old: Any, new: Any) -> Iterator[str]:
    """Yields changes of the baseline, as the driver of ``ModelVerdict`` describes it.

    A missing baseline is a change of the input.
    """
    if new is _MISSING:
        return
    was = {} if old is _MISSING else old
    names = [item.get("name") for item in (was, new)]
    if all(names) and names[0] != names[1]:
        yield f"baseline: {_change(*names)}"
    if new["restored"] and new["restored"] != was.get("restored"):
        yield f"baseline: restored from {_cut(new['restored'])}"
    skipped = [
        {item["name"]: item["why"] for item in values.get("skipped", ())}
        for values in (was, new)
    ]
    for name, _, why in _differences(*skipped):
        gone = "no longer skipped"
        yield f"baseline: {name} is {gone if why is _MISSING else _cut(why)}"


def _inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, old, new in _differences(before, now):
        if old is _MISSING:
            yield f"input {key}: is new"
        elif new is _MISSING:
            # The key has no baseline where it is the candidate itself.
            gone = "none, or the model itself" if key == BASELINE else "is gone"
            yield f"input {key}: {gone}"
        elif len(old) != len(new):
            yield f"input {key}: {len(old)} artifacts -> {len(new)}"
        elif [item["id"] for item in old] == [item["id"] for item in new]:
            yield f"input {key}: the content of {_cut(new[0]['uri'])} changed"
        else:
            is_newer = new[-1]["id"] > old[-1]["id"]
            yield f"input {key}: {_origin(new[-1]['uri'], is_newer)}"


def _origin(uri: str, is_newer: bool) -> str:
    """Returns which node wrote an artifact: TFX's URIs end in node/key/execution."""
    parts = uri.rstrip("/").removesuffix("/value").split("/")
    if len(parts) < 3 or not parts[-1].isdigit():
        return "another artifact"
    if is_newer:
        return f"another artifact ({parts[-3]} ran again)"
    return f"an earlier artifact of {parts[-3]}"


def _outputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, old, new in _differences(flatten(before), flatten(now)):
        yield f"output {name}: {_change(old, new)}"


def _packages(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, old, new in _differences(before, now):
        yield f"package {name}: {old or 'none'} -> {new or 'none'}"


def _node(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, old, new in _differences(flatten(before), flatten(now)):
        yield f"node {name}: {_change(old, new)}"


_COMPARE: dict[str, Callable[[Any, Any], Iterator[str]]] = {
    "node": _node,
    "code": _code,
    "files": _files,
    "properties": _properties,
    "inputs": _inputs,
    "outputs": _outputs,
    "packages": _packages,
}


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yields each key whose values differ, with both; ``_MISSING`` for no value."""
    for key in sorted({*before, *now}):
        old, new = before.get(key, _MISSING), now.get(key, _MISSING)
        if _MISSING in (old, new) or json.dumps(old) != json.dumps(new):
            yield key, old, new


def _change(old: Any, new: Any) -> str:
    texts = [_text(old), _text(new)]
    start = max(0, len(os.path.commonprefix(texts)) - _BEFORE_DIFFERENCE)
    return " -> ".join(_cut(text, start) for text in texts)


def _text(value: Any) -> str:
    if value is _MISSING:
        return "not set"
    text = value if isinstance(value, str) and value else json.dumps(value)
    return " ".join(text.split())


def _cut(text: str, start: int = 0) -> str:
    """Returns a text, or where it is long the part of it from about ``start``."""
    if len(text) <= _MAX_SHOWN:
        return text
    end = start + _MAX_SHOWN
    return ("..." if start else "") + text[start:end] + ("..." if text[end:] else "")
