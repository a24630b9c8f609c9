"""Loading schemas, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas import loader
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


STRINGS = """
feature { name: "inline" type: BYTES string_domain { value: "no" value: "yes" } }
feature { name: "shared" type: BYTES domain: "answers" }
feature { name: "open" type: BYTES }
string_domain { name: "answers" value: "yes" value: "no" value: "maybe" }
"""


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "schema.pbtxt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


INTEGERS = 'feature {{ name: "a" type: INT int_domain {{ {} is_categorical: true }} }}'


@pytest.mark.parametrize(
    ("text", "feature", "classes"),
    [
        (STRINGS, "inline", ["no", "yes"]),
        (STRINGS, "shared", ["yes", "no", "maybe"]),
        (STRINGS, "open", None),
        (INTEGERS.format("min: -1 max: 1"), "a", [-1, 0, 1]),
        (INTEGERS.format("min: 1 max: 3").replace("true", "false"), "a", None),
        (INTEGERS.format("min: 0 max: 10000"), "a", None),
    ],
)
def test_classes(write, text, feature, classes):
    assert loader.class_values(loader.load(write(text)), feature) == classes


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("feature {\n  tipe: INT\n}\n", ", line 2", 'no field named "tipe"'),
        ('feature {\n  name: "a"\n', ", line 2", "Expected"),
        (b"\xff\xfe", "", "cannot be read"),
        ("", "", "it declares no feature"),
        ('feature { name: "a" } feature { name: "a" }', "", "'a' is declared 2 times"),
        ('feature { name: "a" type: BYTES domain: "b" }', "", "the domain 'b'"),
    ],
)
def test_a_file_that_is_no_usable_schema(write, content, place, words):
    path = write(content)
    with pytest.raises(ConfigError) as caught:
        loader.load(path)
    assert caught.value.where == f"{path}{place}"
    assert words in str(caught.value)
