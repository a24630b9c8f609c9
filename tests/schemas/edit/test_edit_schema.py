"""Edits of schema text that keep comments and layout."""

from __future__ import annotations

import difflib

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Owner, Put, Replace
from schemas.edit.edit_schema import (
    accept_changes,
    edit_proto,
    edit_schema,
    read_schema_text,
)
from schemas.edit.schema_text import plain_text
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit

ONE = Replace(
    Owner("feature", "a"),
    "shape",
    "value_count",
    schema_pb2.Feature(value_count=schema_pb2.ValueCount(min=1, max=1)),
)


def _put(path: str, value: float, name: str = "a") -> Put:
    return Put(Owner("feature", name), tuple(path.split(".")), value)


def _values(*values: str, kind: str = "feature", name: str = "a") -> AddValues:
    return AddValues(Owner(kind, name), values)  # type: ignore[arg-type]


def _named(*values: str) -> AddValues:
    return _values(*values, kind="string_domain", name="d")


@pytest.mark.parametrize(
    ("text", "edit", "wanted"),
    [
        pytest.param(
            'feature {\n  name: "a"\n'
            "  presence { min_fraction: 1.0 min_count: 1 } # x\n}\n",
            _put("presence.min_fraction", 0.83),
            'feature {\n  name: "a"\n'
            "  presence { min_fraction: 0.83 min_count: 1 } # x\n}\n",
            id="a number in place",
        ),
        pytest.param(
            'feature {\n  name: "a"\n  presence {\n    min_fraction: 1  # all\n'
            "  }\n}\n",
            _put("presence.min_count", 0),
            'feature {\n  name: "a"\n  presence {\n    min_fraction: 1  # all\n'
            "    min_count: 0\n  }\n}\n",
            id="a new field behind the last and its comment",
        ),
        pytest.param(
            '# feature { name: "a" }\nfeature { name: "b" }\nfeature { name: "\\x61" }',
            _put("type", schema_pb2.INT),
            '# feature { name: "a" }\nfeature { name: "b" }\n'
            'feature { name: "\\x61" type: INT }',
            id="braces in comments, an escaped name",
        ),
        pytest.param(
            'feature { # } {\n  name: "a"  # }\n  shape { dim { size: 1 } }  # one\n}',
            ONE,
            'feature { # } {\n  name: "a"  # }\n'
            "  value_count { min: 1 max: 1 }  # one\n}",
            id="a field in place of another",
        ),
        pytest.param(
            'feature {\n  name: "a"\n  shape {  # always one\n'
            "    dim { size: 1 }\n  }\n}",
            ONE,
            'feature {\n  name: "a"\n  # always one\n'
            "  value_count { min: 1 max: 1 }\n}",
            id="a comment within what is replaced",
        ),
        pytest.param(
            'string_domain {\n  name: "d"\n  value: "x"  # "}"\n  # more to come\n}\n',
            _named("Apple Pay", 'say "hi"'),
            'string_domain {\n  name: "d"\n  value: "x"  # "}"\n  value: "Apple Pay"\n'
            '  value: "say \\"hi\\""\n  # more to come\n}\n',
            id="values of a named domain",
        ),
        pytest.param(
            "feature { name: 'a' string_domain { name: 'd' value: 'é' \"{\" } }",
            _values("ü"),
            "feature { name: 'a' string_domain { name: 'd' value: 'é' \"{\" "
            'value: "ü" } }',
            id="values of an inline domain, strings side by side",
        ),
        pytest.param(
            'string_domain { value: ["x", "y"], name: "d" }',
            _named("z"),
            'string_domain { value: ["x", "y"], value: "z" name: "d" }',
            id="a list of values",
        ),
        pytest.param(
            'feature { name: "a" }  # the end',
            AddFeature(schema_pb2.Feature(name="b", in_environment=["X", "Y"], type=1)),
            'feature { name: "a" }  # the end\n\nfeature {\n  name: "b"\n'
            "  type: BYTES\n"
            '  in_environment: "X"\n  in_environment: "Y"\n}\n',
            id="a new feature",
        ),
    ],
)
def test_only_the_edited_part_changes(text, edit, wanted):
    assert edit_schema(text, [edit], "schema.pbtxt") == wanted


def test_edits_of_the_same_thing_are_made_once():
    text = (
        'feature { name: "a" domain: "d" shape { dim { size: 1 } } }\n'
        'string_domain { name: "d" value: "x" }\n'
    )
    edited = edit_schema(text, [_named("y", "z"), ONE, _named("z", "w"), ONE], "x")
    schema = text_format.Parse(edited, schema_pb2.Schema())
    assert list(schema.string_domain[0].value) == ["x", "y", "z", "w"]
    assert edited.count("value_count") == 1


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_put("type", 1, "nobody"), "no feature 'nobody'"),
        (_named("x"), "no string_domain 'd'"),
        (ONE, "a: no shape"),
        # Two domains exclude each other: the text would hold both.
        (_put("int_domain.min", 1), 'along with field "float_domain"'),
    ],
)
def test_an_edit_that_cannot_be_verified_is_rejected(edit, words):
    text = 'feature { name: "a" float_domain { min: 0 } }'
    with pytest.raises(ConfigError, match="edited safely") as refused:
        edit_schema(text, [edit], "my.pbtxt")
    assert words in str(refused.value)
    assert "my.pbtxt" in str(refused.value)


# What can stand between two tokens, and values that look like what they are not.
_GAPS = st.sampled_from([" ", "\n", "\n  ", '  # } a { "\n', "\r\n\t", " # it's\n  "])
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def _schemas(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draws a schema's text in any layout, and the names of its features."""

    def gap() -> str:
        return draw(_GAPS)

    def string(value: str) -> str:
        one = schema_pb2.StringDomain(value=[value])
        literal = text_format.MessageToString(one, as_one_line=True, as_utf8=True)
        return literal.strip().removeprefix("value: ")

    def message(name: str, fields: list[str]) -> str:
        opened, closed = draw(st.sampled_from([("{", "}"), ("<", ">")]))
        colon = draw(st.sampled_from(["", ":", " :"]))
        inside = "".join(
            gap() + item + draw(st.sampled_from(["", ",", " ;"])) for item in fields
        )
        return f"{name}{colon}{gap()}{opened}{inside}{gap()}{closed}"

    names = draw(st.lists(_TEXTS, min_size=1, max_size=4, unique=True))
    parts = []
    for name in names:
        fields = [f"name:{gap()}{string(name)}", f"type:{gap()}BYTES"]
        inside = draw(st.permutations(["min_fraction: 1.0", "min_count: 1"]))
        fields.append(message("presence", inside))
        fields.append(message("shape", [message("dim", ["size: 1"])]))
        values = [f"value:{gap()}{string(item)}" for item in draw(st.lists(_TEXTS))]
        fields.append(message("string_domain", values))
        fields.append('not_in_environment: "SERVING"')
        fields.append(
            message("drift_comparator", [message("infinity_norm", ["threshold: 0.01"])])
        )
        parts.append(message("feature", draw(st.permutations(fields))) + gap())
    return gap() + "".join(parts), names


@settings(max_examples=40, deadline=None)
@given(_schemas(), st.data())
def test_any_layout_is_edited_exactly(drawn, data):
    text, names = drawn
    before = text_format.Parse(text, schema_pb2.Schema())
    name = data.draw(st.sampled_from(names))
    owner = Owner("feature", name)
    possible: list[Edit] = [
        Put(owner, ("presence", "min_fraction"), 0.25),
        Put(owner, ("presence", "min_count"), 0),
        Put(owner, ("type",), schema_pb2.INT),
        Put(owner, ("skew_comparator", "infinity_norm", "threshold"), 0.5),
        AddValues(owner, tuple(data.draw(st.lists(_TEXTS, min_size=1, unique=True)))),
        Replace(owner, "shape", "value_count", ONE.message),
        AddFeature(schema_pb2.Feature(name=max(names) + "x", type=schema_pb2.INT)),
    ]
    edits = data.draw(st.lists(st.sampled_from(possible), unique_by=id, max_size=7))
    edited = edit_schema(text, edits, "drawn")
    after = text_format.Parse(edited, schema_pb2.Schema())
    assert after == edit_proto(before, edits)
    for kept in ("drift_comparator", "not_in_environment"):
        assert [getattr(item, kept) for item in after.feature[: len(names)]] == [
            getattr(item, kept) for item in before.feature
        ]
    assert edited.count("#") >= text.count("#")


def test_the_reviewed_schemas_keep_every_other_line(tmp_path):
    path = tmp_path / "schema.pbtxt"
    text = (own_root() / "schemas" / "taxi" / "schema.pbtxt").read_text()
    path.write_text(text)
    edits: list[Edit] = [
        _values("Apple Pay", kind="string_domain", name="payment_type"),
        _put("float_domain.min", -3.0, "fare"),
        _put("float_domain.max", 400.0, "fare"),
        _put("presence.min_fraction", 0.5, "company"),
    ]
    accept_changes(path, text, edits)
    lines = difflib.ndiff(text.splitlines(), path.read_text().splitlines())
    assert [line for line in lines if line[0] in "+-"] == [
        '+   value: "Apple Pay"',
        "-   presence { min_fraction: 0.6 min_count: 1 }",
        "+   presence { min_fraction: 0.5 min_count: 1 }",
        "-   float_domain { min: 0 disallow_nan: true disallow_inf: true }",
        "+   float_domain { min: -3.0 disallow_nan: true disallow_inf: true "
        "max: 400.0 }",
    ]
    assert [item.name for item in tmp_path.iterdir()] == ["schema.pbtxt"]


def test_a_file_changed_meanwhile_is_not_written(tmp_path):
    path = tmp_path / "schema.pbtxt"
    path.write_text('feature { name: "a" type: INT }  # by a colleague')
    with pytest.raises(UsageError, match="changed in the meantime"):
        accept_changes(path, 'feature { name: "a" }', [_put("type", 1)])
    assert "colleague" in path.read_text()


def test_links_and_line_endings_are_kept(tmp_path):
    path, link = tmp_path / "real.pbtxt", tmp_path / "link.pbtxt"
    path.write_bytes(b'feature {\r\n  name: "a"\r\n  type: INT\r\n}\r\n')
    link.symlink_to(path)
    accept_changes(link, read_schema_text(link), [_put("type", schema_pb2.BYTES)])
    assert link.is_symlink()
    assert path.read_bytes() == b'feature {\r\n  name: "a"\r\n  type: BYTES\r\n}\r\n'


def test_a_schema_is_printed_without_changing_names_that_cannot_be_printed():
    schema = schema_pb2.Schema()
    for name in ("a\u00a0b", "a\u2028b", "a\u200db\U000e0001", "naïve\n", 'quoted "é"'):
        feature = schema.feature.add(name=name, type=schema_pb2.BYTES)
        feature.string_domain.value.append(name)
        schema.string_domain.add(name=name, value=[name])

    text = plain_text(schema)

    assert text.replace("\n", "").isprintable()
    assert text_format.Parse(text, schema_pb2.Schema()) == schema
    assert "é" in text
