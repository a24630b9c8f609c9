"""What has changed since an execution of a node: its code, files, properties, inputs.

Both sides are in ML Metadata's form: plain exec properties, and artifacts by input key.
TFX is not imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sluice.code_fingerprint import PROPERTY
from sluice.json_values import flatten
from sluice.mlmd_items import Artifact
from sluice.node_kinds import ABOUT_BASELINE, BASELINE

_MAX_SHOWN = 60
_BEFORE_DIFFERENCE = 20
_MISSING = object()


def property_changes(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[str]:
    """Yields a line per difference of exec properties; values are cut."""
    old, new = _parsed(before), _parsed(now)
    was, now_is = old.pop(PROPERTY, None), new.pop(PROPERTY, None)
    if isinstance(was, Mapping) and isinstance(now_is, Mapping):
        for key, kind in (("code", "code"), ("files", "file")):
            yield from content_changes(kind, was.get(key, {}), now_is.get(key, {}))
    for name, was, now_is in _differences(flatten(old), flatten(new)):
        yield f"property {name.removeprefix('custom_config.')}: {_change(was, now_is)}"


def content_changes(
    kind: str, before: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[str]:
    """Yields a line per file of other content; both sides are digests by name."""
    for name, *values in _differences(before, now):
        yield f"{kind} {name}: {_existence(*values)}"


def package_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yields a line per package of another version."""
    versions = [
        (_parsed(properties).get(PROPERTY) or {}).get("packages", {})
        for properties in (before, now)
    ]
    for name, old, new in _differences(*versions):
        yield f"package {name}: {_text(old)} -> {_text(new)}"


def input_changes(
    before: Mapping[str, Sequence[Artifact]], now: Mapping[str, Sequence[Artifact]]
) -> Iterator[str]:
    """Yields a line per input that is another artifact now."""
    ids = [
        {key: [item.id for item in items] for key, items in inputs.items() if items}
        for inputs in (before, now)
    ]
    for key, old, new in _differences(*ids):
        if old is _MISSING:
            yield f"input {key}: is new"
        elif new is _MISSING:
            # The key has no baseline where it is the candidate itself.
            gone = "none, or the model itself" if key == BASELINE else "is gone"
            yield f"input {key}: {gone}"
        elif len(old) != len(new):
            yield f"input {key}: {len(old)} artifacts -> {len(new)}"
        else:
            yield f"input {key}: {_origin(now[key][-1].uri)}"


def _parsed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns properties with the JSON in their strings read, without TFX's own."""
    parsed = {}
    for name, value in properties.items():
        if name.startswith("__"):
            continue
        parsed[name] = value
        if isinstance(value, str) and value[:1] in ("{", "["):
            with suppress(ValueError):
                parsed[name] = json.loads(value)
    if isinstance(about := parsed.pop(ABOUT_BASELINE, None), Mapping):
        skipped = [f"{x['name']} is {x['why']}" for x in about.get("skipped", ())]
        parsed["baseline"] = "; ".join(filter(None, [about.get("name"), *skipped]))
    return parsed


def _existence(old: Any, new: Any) -> str:
    if old is _MISSING:
        return "is new"
    return "is gone" if new is _MISSING else "content changed"


def _origin(uri: str) -> str:
    """Returns which node wrote an artifact: TFX's URIs end in node/key/execution."""
    parts = uri.rstrip("/").removesuffix("/value").split("/")
    is_known = len(parts) > 2 and parts[-1].isdigit()
    return f"another artifact of {parts[-3]}" if is_known else "another artifact"


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
