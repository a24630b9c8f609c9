"""YAML of configs and overrides, and how layers are merged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config.layers import Layer, read_file, read_override
from pipeline.config.yaml_reader import YamlReader
from pipeline.config.yaml_values import describe
from sluice.errors import ConfigError, UsageError

pytestmark = pytest.mark.unit


@pytest.fixture
def read(tmp_path: Path):
    def read(content: str | bytes) -> Layer:
        path = tmp_path / "x.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_file(path, "configs/x.yaml")

    return read


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e-3", 0.001),
        ("1.5E+3", 1500.0),
        (".5", 0.5),
        ("-3", -3),
        ("010", 10),
        ("0x1f", 31),
        ("true", True),
        ("on", "on"),
        ("no", "no"),
        ("y", "y"),
        ("12:30:00", "12:30:00"),
        ("2024-01-31", "2024-01-31"),
        ("1_000", "1_000"),
        ("<<", "<<"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("''", ""),
        ("~", None),
        ("null", None),
        ("", None),
        ("-.inf", float("-inf")),
    ],
)
def test_scalars_mean_what_people_write(read, scalar, value):
    result = read(f"a: {scalar}\n").data["a"]

    assert result == value
    assert type(result) is type(value)


def test_places_name_file_and_line_of_every_key(read):
    layer = read("a: 1\nb:\n  c:\n  - d\n  - {e: 2}\n")

    assert layer.data == {"a": 1, "b": {"c": ["d", {"e": 2}]}}
    assert layer.locations[("a",)] == "configs/x.yaml:1"
    assert layer.locations[("b", "c")] == "configs/x.yaml:3"
    assert layer.locations[("b", "c", 0)] == "configs/x.yaml:4"
    assert layer.locations[("b", "c", 1, "e")] == "configs/x.yaml:5"


def test_an_alias_repeats_its_anchor(read):
    assert read("a: &x [1]\nb: *x\n").data == {"a": [1], "b": [1]}


def test_a_date_of_an_explicit_version_stays_a_string(read):
    assert read("%YAML 1.2\n---\na: 2024-01-31\n").data == {"a": "2024-01-31"}


def test_a_byte_order_mark_is_no_part_of_the_first_key(read):
    assert read(b"\xef\xbb\xbfa: 1\n").data == {"a": 1}


@pytest.mark.parametrize(
    ("content", "what", "where", "details"),
    [
        ("", "empty", "configs/x.yaml", "nothing"),
        ("[a, b]", "not a mapping", "configs/x.yaml", "a list of 2"),
        ("a:\n- [1, 2\n\n", "not valid YAML", "configs/x.yaml:4", "begins on line 2"),
        (
            "a: 1\n b: 2\n",
            "not valid YAML",
            "configs/x.yaml:2, column 3",
            "mapping values",
        ),
        (
            "b: 1\na: \x01",
            "not valid YAML",
            "configs/x.yaml:2",
            "control character, 0x01",
        ),
        ("a:\n\t- 1", "not valid YAML", "configs/x.yaml:2, column 1", "with spaces"),
        ("a: " + "[" * 5000, "nested too deeply", "configs/x.yaml", "50 levels"),
        (f"a: {'[' * 60}{']' * 60}", "nested too deeply", "configs/x.yaml:1", ""),
        ("# " + "x" * 1_000_000, "too large", "configs/x.yaml", "1,000,000"),
        ("a: 1\nb: " + "9" * 5000, "cannot be parsed", "configs/x.yaml:2", "'999"),
        ('a: "\\UFFFFFFFF"', "not valid YAML", "configs/x.yaml", "too large"),
        ("a: 1\n---\nb: 2\n", "not valid YAML", "configs/x.yaml:2", "another document"),
        (
            "a: 1\nb: {c: 1,\n c: 2}",
            "the key b.c is given twice",
            "configs/x.yaml:3",
            "already at configs/x.yaml:2",
        ),
        ("? [a]\n: b", "a key is not a string", "configs/x.yaml:1", ""),
        ("a: !env HOME", "tag '!env' is not supported", "configs/x.yaml:1", "quote"),
        ("a: !!set {b}", "is not supported", "configs/x.yaml:1", "set"),
        ("%YAML 1.1\n---\na: yes", "%YAML 1.1 is not supp", "configs/x.yaml:1", "1.2"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "merge keys", "configs/x.yaml:3", "alias"),
        ("a: 1\nb: &x [*x]", "nested too deeply", "configs/x.yaml:2", "alias"),
        ("a: 1\nb: *.gz", "not valid YAML", "configs/x.yaml:2", "* into quotes"),
    ],
)
def test_refuses(read, content, what, where, details):
    with pytest.raises(ConfigError) as caught:
        read(content)

    assert what in caught.value.what
    assert str(caught.value.where).startswith(where)
    assert details in str(caught.value)


_PARTS = [*" \n\t,:-?[]{}&*!|>%@`\"'#~<=\\._+", "%YAML 1.", "---", "\\U", "!!", "bool"]


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from([*_PARTS, *"abFx019"]), max_size=16).map("".join))
def test_any_text_is_read_or_refused(text):
    with suppress(ConfigError):
        YamlReader("a text").read(text)


def test_refuses_aliases_that_multiply(read):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        repeated = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{repeated}]")

    with pytest.raises(ConfigError, match="nested too deeply"):
        read("\n".join(lines))


def test_refuses_bytes_that_are_not_utf8(read):
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        read(b"a: 1\nb: \xe9\n")

    assert caught.value.where == "configs/x.yaml:2"
    assert "0xe9" in str(caught.value)


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_file(tmp_path, "configs/x.yaml")

    assert "directory" in str(caught.value)


def test_an_overlay_merges_mappings_and_replaces_the_rest():
    base = Layer({"a": {"b": 1, "c": [1, 2]}, "d": 3, "e": {"f": 1}})
    top = Layer({"a": {"c": [3], "g": 4}, "e": None, "d": {"h": 5}})

    merged = base.overlaid_with(top)

    assert merged.data == {
        "a": {"b": 1, "c": [3], "g": 4},
        "d": {"h": 5},
        "e": None,
    }
    assert base.data["a"] == {"b": 1, "c": [1, 2]}


def test_an_overlay_replaces_a_mapping_of_another_kind():
    base = Layer({"x": {"kind": "hashed", "buckets": 64}})

    numeric = base.overlaid_with(Layer({"x": {"kind": "numeric"}}))
    larger = base.overlaid_with(Layer({"x": {"kind": "hashed", "buckets": 9}}))
    same = base.overlaid_with(Layer({"x": {"buckets": 9}}))

    assert numeric.data == {"x": {"kind": "numeric"}}
    assert larger.data == same.data == {"x": {"kind": "hashed", "buckets": 9}}


def test_an_overlay_replaces_the_parameters_of_another_model():
    given = {"model": "cnn", "model_params": {"filters": [8], "dropout": 0.5}}
    base = Layer(given, {("model_params", "filters"): "x.yaml:3"})

    other = {"model": "VGG16", "model_params": {"head": [256]}}
    assert base.overlaid_with(Layer(other)).data == other
    assert base.overlaid_with(Layer({"model": "dense"})).data == {"model": "dense"}
    assert base.overlaid_with(Layer({"model": "dense"})).locations == {}
    same = Layer({"model": "cnn", "model_params": {"dropout": 0.2}})
    merged = base.overlaid_with(same)
    assert merged.data["model_params"] == {"filters": [8], "dropout": 0.2}
    assert merged.locations == base.locations


def test_an_overlay_keeps_the_location_of_each_key():
    base = Layer(
        {"a": {"b": [1], "c": 2}},
        {("a",): "base:1", ("a", "b"): "base:2", ("a", "b", 0): "base:2"}
        | {("a", "c"): "base:3"},
    )
    top = Layer({"a": {"b": 5}}, {("a",): "top:1", ("a", "b"): "top:2"})

    locations = base.overlaid_with(top).locations

    assert locations == {
        ("a",): "base:1",
        ("a", "b"): "top:2",
        ("a", "c"): "base:3",
    }


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a=1", {"a": 1}),
        ("a.b.c=1e-4", {"a": {"b": {"c": 0.0001}}}),
        ("a.b=[x, y]", {"a": {"b": ["x", "y"]}}),
        ("a={b: {c: 1}}", {"a": {"b": {"c": 1}}}),
        ("a=b=c", {"a": "b=c"}),
        ("a=null", {"a": None}),
        ('a=""', {"a": ""}),
    ],
)
def test_an_override_is_a_key_path_and_a_yaml_value(text, data):
    layer = read_override(text)

    assert layer.data == data
    assert set(layer.locations.values()) == {f"--set {text}"}


@pytest.mark.parametrize("text", ["", "a", "=1", "a..b=1", ".a=1", "a.=1"])
def test_an_override_must_have_a_key_and_a_value(text):
    with pytest.raises(UsageError, match="has no key or no value") as caught:
        read_override(text)

    assert caught.value.where == f"--set {text}"
    assert "--set train.epochs=5" in str(caught.value)


def test_an_override_that_is_not_yaml_is_named():
    with pytest.raises(ConfigError, match="not valid YAML") as caught:
        read_override("a=[1,")

    assert caught.value.where == "--set a=[1,"


def test_describe_is_short():
    assert len(describe("x" * 1000)) < 80
