"""Generates the config's JSON schema and reference page, ``docs/config.md``.

Both are generated from the models; what a key means is the string below it. Those are
read here, and not by pydantic when a model is imported: 0.04 s of every command. A test
compares the page; ``python -m pipeline.config.reference`` prints it.

The schema accepts everything that ``load_config`` accepts. Combinations of keys are
checked by ``sluice validate`` only.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pipeline.config.config import Config
from pipeline.config.learning_rate import DEFAULT_SCHEDULE
from sluice.config_section import Section

PAGE = Path(__file__).parents[2] / "docs" / "config.md"

_Json = dict[str, Any]

_INTRO = """\
# Config reference

The keys of `configs/NAME.yaml`. This page is generated: \
`python -m pipeline.config.reference > docs/config.md`.

`sluice config NAME` prints a config with all its defaults, `sluice validate NAME` \
checks it, and `sluice config --schema` prints a JSON schema for editors. \
Paths are relative to the project root, the directory that holds `configs/`.
"""
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


class _Generate(GenerateJsonSchema):
    """As pydantic's own, but a ``kind`` is required if it decides."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        inner = field["schema"].get("schema", {})
        names = inner["expected"] if inner.get("type") == "literal" else ()
        is_tag = len(names) == 1 and DEFAULT_SCHEDULE not in names
        return is_tag or super().field_is_required(field, total)

    def model_schema(self, schema: Any) -> _Json:
        section = super().model_schema(schema)
        fields = schema["cls"].model_fields
        for name, meaning in _docstrings(schema["cls"]).items():
            key = fields[name].alias or name
            section["properties"][key]["description"] = meaning
        return section

    def encode_default(self, dft: Any) -> Any:
        # Sections are built at first use, which their own method is.
        return dft.model_dump(by_alias=True) if isinstance(dft, Section) else dft


def _docstrings(section: type[Section]) -> dict[str, str]:
    """Returns the string below each key of a section and of its base classes."""
    found: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if issubclass(cls, Section):
            (tree,) = ast.parse(inspect.getsource(cls)).body
            for key, below in pairwise(getattr(tree, "body", ())):
                match key, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        found[name] = inspect.cleandoc(text)
    return found


def json_schema() -> _Json:
    """Returns the JSON schema (draft 2020-12) of a whole config, without overlays."""
    schema = Config.model_json_schema(schema_generator=_Generate)
    return {"$schema": _Generate.schema_dialect, **schema}


def reference_page() -> str:
    """Returns the text of ``docs/config.md``: one table for each section."""
    schema, lines = json_schema(), [_INTRO]
    defs = schema["$defs"]
    for path, section in _sections(schema, defs, ""):
        if path:
            depth = 2 + path.count(".")
            meaning = " ".join(section["description"].split())
            lines += [f"{'#' * depth} {path}", "", meaning, ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        required = section.get("required", ())
        for key, value in section["properties"].items():
            default = "required" if key in required else _default(value, defs)
            meaning = _meaning(value, defs).replace("|", r"\|")
            lines.append(f"| `{key}` | {_type(value)} | {default} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _sections(section: _Json, defs: _Json, path: str) -> Iterator[tuple[str, _Json]]:
    """Yields key path and schema of a section and of all those below it, in order."""
    yield path, section
    for key, value in section["properties"].items():
        for step, name in _refs(value):
            below = defs[name]
            kind = below["properties"].get("kind", {}).get("const")
            of_kind = f" of kind {kind}" if kind else ""
            inside = f"{path}.{key}".removeprefix(".") + step + of_kind
            yield from _sections(below, defs, inside)


def _refs(value: _Json) -> Iterator[tuple[str, str]]:
    """Yields the sections inside a value: the continuation of its key, and the name."""
    if "$ref" in value:
        yield "", value["$ref"].rpartition("/")[2]
    for option in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _refs(option)
    for key, step in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(value.get(key), dict):
            yield from ((step + rest, name) for rest, name in _refs(value[key]))


def _type(value: _Json) -> str:
    """Returns the type of a value in words; null is shown by the default only."""
    if options := [*value.get("anyOf", ()), *value.get("oneOf", ())]:
        texts = [_type(item) for item in options if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(texts))
    if "const" in value or "enum" in value:
        names = value.get("enum") or [value["const"]]
        return " or ".join(f"`{name}`" for name in names)
    if "$ref" in value:
        return "mapping"
    match value:
        case {"type": "array"}:
            return f"list of {_type(value['items'])}"
        case {"type": "object", "additionalProperties": dict(inside)}:
            return f"mapping of {_type(inside)}"
        case {"type": "object"}:
            return "mapping"
    bounds = [
        f"{text} {value[key]:.10g}" for key, text in _BOUNDS.items() if key in value
    ]
    return ", ".join([value.get("type", "any value"), *bounds])


def _default(value: _Json, defs: _Json) -> str:
    default = value["default"]
    for _, name in _refs(value):
        keys = defs[name]["properties"]
        if default == {key: item.get("default") for key, item in keys.items()}:
            default = {}
    return f"`{json.dumps(default)}`"


def _meaning(value: _Json, defs: _Json) -> str:
    """Returns the description of a key, or the first line of its section's."""
    if "description" in value:
        return " ".join(value["description"].split())
    sections = (defs[name]["description"] for _, name in _refs(value))
    return " ".join(text.partition("\n")[0] for text in sections)


if __name__ == "__main__":
    print(reference_page(), end="")
