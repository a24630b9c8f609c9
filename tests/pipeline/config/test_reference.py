"""The JSON schema of the config and docs/config.md, against what ``Config`` accepts."""

from __future__ import annotations

import copy
import functools
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError
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
    "validate": {
        "default": "warn",
        "rules": [{"feature": "fare", "anomaly": "out_of_range", "action": "warn"}],
        "min_examples": {"train": 10_000},
        "max_count_change": 0.5,
        "stale_after_h": 48,
    },
    "sensitive": ["name"],
    "push": {"serving_dir": "/models"},
    "cloud": {
        "engine": "vertex",
        "root": "gs://bucket/folder",
        "image": "region-docker.pkg.dev/project/repository/sluice:tag",
        "env": {"TZ": "UTC"},
        "nodes": {
            "default": {"cpu": 4, "memory_gb": 16, "retries": 1},
            "Trainer": {
                "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
                "workers": 2,
                "tpu": {"topology": "2x2", "runtime_version": "2.16.1"},
            },
        },
        "beam": {"runner": "dataflow", "nodes": ["StatisticsGen"], "args": ["--x=1"]},
        "push": {"registry": {"serving_image": "image"}, "endpoint": {"name": "a"}},
        "schedule": {"cron": "0 3 * * *", "timezone": "UTC"},
    },
}
DOCUMENTS = [*BUNDLED, {**BUNDLED[0], **MORE}]


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def marks(document: Any) -> list[str]:
    """Returns where an editor with the schema finds faults."""
    return [error.json_path for error in validator().iter_errors(document)]


def is_accepted(document: Any) -> bool:
    if type(document["version"]) is not int:
        return False  # By load_config, before it asks Config.
    try:
        Config.model_validate(document)
    except ValidationError:
        return False
    return True


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
    assert is_accepted(document)
    assert marks(document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("name",), "My Digits"),
        (("data", "dir"), ""),
        (("features", "image", "channels"), 2),
        (("label", "classes"), [0, "b"]),
        (("train", "epochs"), 0),
        (("evaluate", "thresholds"), [{"metric": "a", "lower_bound": 1, "slice": 3}]),
        (("examples",), {"max_corrupt_fraction": 1.5}),
    ],
)
def test_the_json_schema_rejects_invalid_values(path, value):
    document = copy.deepcopy(BUNDLED[0])
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    assert not is_accepted(document)
    assert marks(document)
