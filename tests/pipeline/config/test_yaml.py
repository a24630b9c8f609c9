"""YAML of configs and overrides, and how layers are merged."""

from __future__ import annotations

import pytest

from pipeline.config.load import Layer, read_file, read_override
from sluice.errors import ConfigError, UsageError

pytestmark = pytest.mark.unit


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "x.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_file(path, "configs/x.yaml")

    return read


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e-3", 0.001),
        ("010", 10),
        ("no", "no"),
        ("12:30:00", "12:30:00"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(read, scalar, value):
    result = read(f"a: {scalar}\n").data["a"]
    assert result == value
    assert type(result) is type(value)


def test_each_key_has_its_file_and_line(read):
    layer = read(b"\xef\xbb\xbfa: 1\nb:\n  c:\n  - d\n  - {e: 2}\n")
    assert layer.data == {"a": 1, "b": {"c": ["d", {"e": 2}]}}
    lines = {(): None, ("a",): 1, ("b", "c"): 3, ("b", "c", 0): 4}
    for path, line in (lines | {("b", "c", 1, "e"): 5}).items():
        assert layer.locations.get(path) == (line and f"configs/x.yaml:{line}")


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        ("", "empty, or not a mapping", "configs/x.yaml"),
        ("a:\n- [1, 2\n\n", "not valid YAML", "configs/x.yaml:4"),
        ("a: 1\nb: {c: 1,\n c: 2}", "not valid YAML", "configs/x.yaml:3"),
        ("a: !env HOME", "not valid YAML", "configs/x.yaml:1"),
        ("a: 1\nb: {[c, d]: 1}", "cannot be a key", "configs/x.yaml:2"),
        (b"a: 1\nb: \xe9\n", "cannot be read", "configs/x.yaml"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(read, content, what, where):
    with pytest.raises((ConfigError, UsageError)) as caught:
        read(content)
    assert what in caught.value.what
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("base", "top", "merged"),
    [
        ({"kind": "a", "n": 1}, {"kind": "b"}, {"kind": "b"}),
        ({"class": "A", "params": {}}, {"class": "B"}, {"class": "B"}),
    ],
)
def test_an_overlay_replaces_a_mapping_of_another_kind(base, top, merged):
    layer = Layer({"x": base}, {})
    layer.overlay(Layer({"x": top}, {}))
    assert layer.data == {"x": merged}


def test_an_overlay_replaces_the_parameters_of_another_model():
    for top, params in [("VGG16", None), ("cnn", {"dropout": 0.5})]:
        layer = Layer({"model": "cnn", "model_params": {"dropout": 0.5}}, {})
        layer.overlay(Layer({"model": top}, {}))
        assert layer.data.get("model_params") == params


def test_an_overlay_keeps_the_location_of_each_key():
    locations = {("a",): "base:1", ("a", "b"): "base:2", ("a", "b", 0): "base:2"}
    base = Layer({"a": {"b": [1], "c": 2}}, locations | {("a", "c"): "base:3"})
    base.overlay(Layer({"a": {"b": 5}}, {("a",): "top:1", ("a", "b"): "top:2"}))
    places = [base.locations[key] for key in (("a",), ("a", "b"), ("a", "c"))]
    assert places == ["base:1", "top:2", "base:3"]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a.b.c=1e-4", {"a": {"b": {"c": 0.0001}}}),
        ("a.b=[x, y]", {"a": {"b": ["x", "y"]}}),
        ("a=b=c", {"a": "b=c"}),
        ('a=""', {"a": ""}),
    ],
)
def test_an_override_is_a_key_path_and_a_yaml_value(text, data):
    layer = read_override(text)
    assert layer.data == data
    assert set(layer.locations.values()) == {f"--set {text}"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "no key or no value") for text in ("", "a", "=1", "a..b=1", "a.=1")),
        ("a=[1,", "not valid YAML"),
    ],
)
def test_an_override_that_is_none_is_refused(text, says):
    with pytest.raises((UsageError, ConfigError), match=says) as caught:
        read_override(text)
    assert caught.value.where == f"--set {text}"
