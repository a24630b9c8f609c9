"""The JSON schema of the config and docs/config.md, against what ``Config`` accepts."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from pipeline.config.config import Config
from pipeline.config.reference import json_schema, reference_page
from sluice.project import own_root

pytestmark = pytest.mark.unit

BUNDLED = [
    YAML(typ="safe").load(path.read_text())
    for path in sorted((own_root() / "configs").glob("*.yaml"))
]
# What the bundled configs leave out.
MORE: dict[str, Any] = {
    "data": {
        "dir": "data",
        "files": "*.tfrecord",
        "hash_splits": {"train": 8, "eval": 1, "test": 1, "by": "user_id"},
        "serving": "served/*",
    },
    "examples": {"window": 7, "complete_when": {"marker": "_SUCCESS"}},
    "sensitive": ["name"],
    "push": {"serving_dir": "/models"},
}
DOCUMENTS = [*BUNDLED, {**BUNDLED[0], **MORE}]


def test_the_reference_page_is_up_to_date():
    page = own_root() / "docs" / "config.md"
    assert page.read_text() == reference_page(), (
        "write it anew: python -m pipeline.config.reference > docs/config.md"
    )


def test_every_key_says_what_it_means():
    schema = json_schema()
    for name, section in {"Config": schema, **schema["$defs"]}.items():
        assert section["description"], name
        for key, value in section["properties"].items():
            # A key that holds a section is explained by it.
            refs = [value, *value.get("anyOf", ()), *value.get("oneOf", ())]
            explained = value.get("description") or any("$ref" in ref for ref in refs)
            assert explained, f"{name}.{key} has no description"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_schema_accepts_what_is_accepted(document):
    Config.model_validate(document)
    jsonschema.validate(document, json_schema(), jsonschema.Draft202012Validator)
