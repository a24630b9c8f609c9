"""Generates the config's JSON schema and reference page, ``docs/config.md``.

Both are generated from the models; what a key means is the string below it. Those are
read here, and not by pydantic when a model is imported: 0.04 s of every command. A test
compares
the page; ``python -m pipeline.config.reference --write`` updates it.

The schema accepts everything that ``load_config`` accepts. Combinations of keys are
checked by ``sluice validate`` only.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pipeline.config.cloud import CloudBeam, CloudPush
from pipeline.config.config import Config
from pipeline.config.learning_rate import DEFAULT_SCHEDULE
from pipeline.config.train import Augment, Devices, Input, KerasObject, TensorBoard
from sluice.config_section import Section
from sluice.storage import atomic

PAGE = Path(__file__).parents[2] / "docs" / "config.md"

_Json = dict[str, Any]

_INTRO = """\
# Config reference

The keys of `configs/NAME.yaml`. This page is generated: \
`python -m pipeline.config.reference --write`.

`sluice config NAME` prints a config with all its defaults, `sluice validate NAME` \
checks it, and `sluice config --schema` prints a JSON schema for editors. \
Paths are relative to the project root, the directory that holds `configs/`.
"""
_CLOUD = (CloudBeam, CloudPush)
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


class _Generate(GenerateJsonSchema):
    """As pydantic's own, but without titles; a ``kind`` is required if it decides."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

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
                        found[name] = " ".join(text.split())
    return found


def json_schema() -> _Json:
    """Returns the JSON schema (draft 2020-12) of a whole config, without overlays."""
    for section in (KerasObject, TensorBoard, Input, Augment, Devices, *_CLOUD):
        section.model_rebuild()  # Defaults, which are not built when imported.
    schema = Config.model_json_schema(schema_generator=_Generate)
    return {"$schema": _Generate.schema_dialect, **schema}


def reference_page() -> str:
    """Returns the text of ``docs/config.md``: one table for each section."""
    schema = json_schema()
    lines = [_INTRO]
    for path, section in _sections(schema, schema["$defs"], ""):
        if path:
            depth = 2 + path.count(".")
            lines += [
                f"{'#' * depth} {path}",
                "",
                " ".join(section["description"].split()),
                "",
            ]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        required = section.get("required", ())
        for key, value in section["properties"].items():
            default = (
                "required" if key in required else _default(value, schema["$defs"])
            )
            meaning = _meaning(value, schema["$defs"]).replace("|", r"\|")
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


def _type(value: _Json, plural: str = "") -> str:
    """Returns the type of a value in words; null is shown by the default only."""
    if options := [*value.get("anyOf", ()), *value.get("oneOf", ())]:
        texts = [_type(item, plural) for item in options if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(texts))
    if "const" in value or "enum" in value:
        names = value.get("enum") or [value["const"]]
        return " or ".join(f"`{name}`" for name in names)
    if "$ref" in value:
        return f"mapping{plural}"
    match value.get("type"):
        case "array":
            return f"list{plural} of {_type(value['items'], 's')}"
        case "object":
            inside = value.get("additionalProperties")
            if isinstance(inside, dict):
                return f"mapping{plural} of {_type(inside, 's')}"
            return f"mapping{plural}"
        case None:
            return "any value"
        case kind:
            bounds = [
                f"{text} {value[key]:.10g}"
                for key, text in _BOUNDS.items()
                if key in value
            ]
            return ", ".join([f"{kind}{plural}", *bounds])


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
        return value["description"]
    return " ".join(
        defs[name]["description"].partition("\n")[0] for _, name in _refs(value)
    )


def main() -> None:
    """Prints the reference page, or writes it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        atomic.write_text(PAGE, reference_page())
    else:
        print(reference_page(), end="")


if __name__ == "__main__":
    main()
