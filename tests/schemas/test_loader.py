"""Loading schemas, and their errors."""

from __future__ import annotations

import contextlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import schemas
from schemas import loader
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit

SCHEMAS = Path(schemas.__file__).parent

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


def test_the_digits_schema():
    schema = loader.load(SCHEMAS / "digits" / "schema.pbtxt")

    assert loader.feature_names(schema) == ["image", "label"]
    assert loader.class_values(schema, "label") == list(range(10))
    assert loader.class_values(schema, "image") is None


# What only training data has.
LABELS = {
    "digits": {"label"},
    "taxi": {"big_tip"},
    "mnist": {"label"},
    "fashion-mnist": {"label"},
    "cifar10": {"label"},
    "flowers": {"label", "class", "one_hot_class", "size"},
}


def test_every_schema_is_tested():
    assert LABELS.keys() == {path.parent.name for path in SCHEMAS.glob("*/*.pbtxt")}


@pytest.mark.parametrize("name", LABELS)
def test_only_the_label_is_not_asked_for_in_serving(name):
    schema = loader.load(SCHEMAS / name / "schema.pbtxt")

    assert list(schema.default_environment) == ["TRAINING", "SERVING"]
    for feature in schema.feature:
        expected = ["SERVING"] if feature.name in LABELS[name] else []
        assert list(feature.not_in_environment) == expected, feature.name


def test_classes_of_strings(write):
    schema = loader.load(write(STRINGS))

    assert loader.class_values(schema, "inline") == ["no", "yes"]
    assert loader.class_values(schema, "shared") == ["yes", "no", "maybe"]
    assert loader.class_values(schema, "open") is None


@pytest.mark.parametrize(
    ("domain", "classes"),
    [
        ("min: 3 max: 5 is_categorical: true", [3, 4, 5]),
        ("min: -1 max: 0 is_categorical: true", [-1, 0]),
        ("min: 3 max: 5", None),
        ("min: 3 is_categorical: true", None),
        ("max: 3 is_categorical: true", None),
        ("min: 1 max: 10000 is_categorical: true", list(range(1, 10001))),
        ("min: 0 max: 10000 is_categorical: true", None),
        ("min: 0 max: 9000000000000000000 is_categorical: true", None),
    ],
)
def test_classes_of_integers(write, domain, classes):
    path = write(f'feature {{ name: "a" type: INT int_domain {{ {domain} }} }}')

    assert loader.class_values(loader.load(path), "a") == classes


def test_an_unknown_feature_names_the_nearest(write):
    schema = loader.load(write(STRINGS))

    with pytest.raises(ConfigError, match="no feature named 'inlien'") as caught:
        loader.class_values(schema, "inlien")
    assert caught.value.hint == "did you mean 'inline'?"
    assert caught.value.expected == "one of its features: inline, shared, open"
    with pytest.raises(ConfigError) as caught:
        loader.class_values(schema, "zzz")
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ('feature {\n  name: "a"\n  tipe: INT\n}\n', 3, 'no field named "tipe"'),
        ('feature {\n  name: "a"\n  type: NUMBER\n}\n', 3, "NUMBER"),
        ('feature {\n  name: "a"\n', 2, "Expected"),
        ("version: 1\nname: taxi\n", 1, 'no field named "version"'),
        ('{"feature": []}', 1, "Expected identifier"),
    ],
)
def test_a_file_that_is_not_a_schema_names_the_line(write, content, line, message):
    path = write(content)

    with pytest.raises(ConfigError, match="not a schema") as caught:
        loader.load(path)
    assert caught.value.where == f"{path}, line {line}"
    assert message in str(caught.value)


@pytest.mark.parametrize("depth", [60, 500])
def test_a_schema_that_is_nested_too_deep(write, depth):
    """protobuf's binary form, which TFDV reads, has an end at 100 messages."""
    inside = "struct_domain { feature { " * depth + "} }" * depth
    path = write(f'feature {{ name: "a" {inside} }}')

    with pytest.raises(ConfigError, match="not a schema") as caught:
        loader.load(path)
    assert caught.value.where == str(path)
    assert "messages nested more than 100 deep" in str(caught.value)


TOKENS = st.one_of(
    st.sampled_from(list("{}[]<>:;,-#'\"\n\ufeff")),
    st.sampled_from(
        "feature name type INT BYTES presence min_fraction nan inf".split()
    ),
    st.sampled_from("int_domain min max domain string_domain value shape dim".split()),
    st.sampled_from("annotation struct_domain 1 -1 08 0x 1.5.2 1e999 true".split()),
    st.sampled_from(['name: "a"', '"a"', '"\\xff"', '"\\udead"', "9" * 5000]),
    st.just("[type.googleapis.com/tensorflow.metadata.v0.Schema]"),
)


@settings(max_examples=300, deadline=None)
@given(
    before=st.lists(TOKENS, max_size=8),
    inside=st.lists(TOKENS, max_size=8),
    noise=st.binary(max_size=3),
)
def test_arbitrary_bytes_are_a_schema_or_rejected(
    tmp_path_factory, before, inside, noise
):
    path = tmp_path_factory.getbasetemp() / "odd.pbtxt"
    feature = f'feature {{ name: "a" {" ".join(inside)} }}'
    path.write_bytes(f"{' '.join(before)} {feature} ".encode() + noise)

    with contextlib.suppress(ConfigError):
        loader.class_values(loader.load(path), "a")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it declares no feature"),
        (
            'feature { name: "a" } feature { name: "b" } feature { name: "a" }',
            "feature 'a' is declared 2 times",
        ),
        (
            STRINGS + 'feature { name: "a" type: BYTES domain: "anwsers" }',
            "feature 'a' has the domain 'anwsers', which is not declared",
        ),
    ],
)
def test_a_schema_that_cannot_work(write, content, words):
    path = write(content)

    with pytest.raises(ConfigError) as caught:
        loader.load(path)
    assert caught.value.where == str(path)
    assert words in str(caught.value)


def test_a_schema_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file") as caught:
        loader.load(tmp_path / "missing.pbtxt")
    assert "`schema`" in str(caught.value)
