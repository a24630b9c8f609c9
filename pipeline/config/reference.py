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
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pipeline.config.config import Config
from sluice.config_section import Section

_Json = dict[str, Any]

_INTRO = """\
# Config reference

The keys of `configs/NAME.yaml`. This page is generated: \
`python -m pipeline.config.reference > docs/config.md`.

`sluice config NAME` prints a config with all its defaults, `sluice validate NAME` \
checks it, and `sluice config --schema` prints a JSON schema for editors. \
Paths are relative to the project root, the directory that holds `configs/`.
"""
_BOUNDS = (
    ("minimum", "from"),
    ("exclusiveMinimum", "above"),
    ("maximum", "to"),
    ("exclusiveMaximum", "below"),
)


class _Generate(GenerateJsonSchema):
    """As pydantic's own, with the docstrings of keys."""

    def model_schema(self, schema: Any) -> _Json:
        section = super().model_schema(schema)
        fields = schema["cls"].model_fields
        for name, meaning in _docstrings(schema["cls"]).items():
            key = fields[name].alias or name
            section["properties"][key]["description"] = " ".join(meaning.split())
        return section

    def encode_default(self, dft: Any) -> Any:
        # Sections are built at first use, which their own method is.
        return dft.model_dump(by_alias=True) if isinstance(dft, Section) else dft


def _docstrings(section: type[Section]) -> dict[str, str]:
    """Returns the string below each key of a section and of its base classes."""
    docstrings: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if issubclass(cls, Section):
            (tree,) = ast.parse(inspect.getsource(cls)).body
            for key, below in pairwise(getattr(tree, "body", ())):
                match key, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        docstrings[name] = inspect.cleandoc(text)
    return docstrings


def json_schema() -> _Json:
    """Returns the JSON schema (draft 2020-12) of a whole config, without overlays."""
    schema = Config.model_json_schema(schema_generator=_Generate)
    return {"$schema": _Generate.schema_dialect, **schema}


def reference_page() -> str:
    """Returns the text of ``docs/config.md``: plain keys, then a list per section."""
    schema = json_schema()
    plain: list[str] = []
    sections: list[str] = []
    for key, value in schema["properties"].items():
        alone = {"properties": {key: value}, "required": schema["required"]}
        first, *below = _keys(alone, schema["$defs"])
        if below:
            sections += ["", f"## {key}", "", first, *below]
        else:
            plain.append(first)
    return "\n".join([_INTRO, *plain, *sections, ""])


def _keys(section: _Json, defs: _Json, indent: str = "") -> Iterator[str]:
    """Yields a line for each key of a section, and for the keys below it."""
    for key, value in section["properties"].items():
        if key == "kind":
            continue
        inside = list(_sections(value, defs))
        about, default = [_type(value)], value.get("default")
        if key in section.get("required", ()):
            about.append("required")
        elif not (inside and isinstance(default, dict)):
            about.append(f"default `{json.dumps(default)}`")
        plain = [inner for inner in inside if "kind" not in inner["properties"]]
        # What null means stands last, behind what the sections of the key are.
        meaning, null, unset = value.get("description", "").partition("null: ")
        meanings = [meaning, *(inner["description"] for inner in plain), null + unset]
        meaning = " ".join(" ".join(meanings).split())
        yield f"{indent}- `{key}` ({', '.join(about)}): {meaning}"
        for inner in inside:
            step = indent + "  "
            if kind := inner["properties"].get("kind"):
                meaning = " ".join(inner["description"].split())
                yield f"{step}- `kind: {kind['const']}`: {meaning}"
                step += "  "
            yield from _keys(inner, defs, step)


def _sections(value: _Json, defs: _Json) -> Iterator[_Json]:
    """Yields the sections that a value, or an item of it, may be."""
    if "$ref" in value:
        yield defs[value["$ref"].rpartition("/")[2]]
    options = [*value.get("anyOf", ()), *value.get("oneOf", ())]
    for inside in (*options, value.get("items"), value.get("additionalProperties")):
        if isinstance(inside, dict):
            yield from _sections(inside, defs)


def _type(value: _Json) -> str:
    """Returns the type of a value in words; null is shown by the default only."""
    if options := [*value.get("anyOf", ()), *value.get("oneOf", ())]:
        texts = [_type(item) for item in options if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(texts))
    if names := value.get("enum") or ([value["const"]] if "const" in value else []):
        return " or ".join(f"`{name}`" for name in names)
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}"
    bounds = [f"{text} {value[key]:.10g}" for key, text in _BOUNDS if key in value]
    name = value.get("type", "object").replace("object", "mapping")
    return " ".join([name, *bounds])


if __name__ == "__main__":
    print(reference_page(), end="")
