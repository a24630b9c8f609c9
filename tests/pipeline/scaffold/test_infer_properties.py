"""Properties of proposals for arbitrary records."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.layers import read_file
from pipeline.scaffold.choose_label import choose_label
from pipeline.scaffold.config_text import config_text
from pipeline.scaffold.guess_splits import SplitGuess
from pipeline.scaffold.infer_schema import infer_schema
from pipeline.scaffold.propose import propose
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.schema_text import schema_text
from pipeline.scaffold.summarize import summarize
from sample_data.tf_example import encode
from sluice.errors import SluiceError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

# Lone surrogates are no UTF-8, so they are in no record either.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
WORDS = st.sampled_from(
    ["label", "user_id", "lat", "lon", "date", "x", "image/class/text", "time"]
)
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)
VALUES = st.one_of(
    st.lists(INTEGERS, min_size=1, max_size=2),
    st.lists(st.floats(width=32), min_size=1, max_size=2),
    st.lists(st.binary(max_size=40), min_size=1, max_size=2),
    st.lists(st.sampled_from([b"GIF89a", b"\x89PNG\r\n\x1a\n", b"yes", b"no"])).filter(
        bool
    ),
)
RECORDS = st.lists(
    st.dictionaries(NAMES | WORDS, VALUES, max_size=5), min_size=1, max_size=8
)


@given(RECORDS)
@settings(max_examples=150, deadline=None)
def test_a_schema_of_any_records(records):
    summary = summarize(map(encode, records))

    schema = infer_schema(summary)

    names = {feature.name for feature in schema.feature}
    assert names == {name for record in records for name in record}
    for name in names:
        found = summary.features[name]
        assert found.present == sum(name in record for record in records)
    written = text_format.MessageToString(schema)
    assert text_format.Parse(written, schema_pb2.Schema()) == schema


@given(
    names=st.lists(NAMES | WORDS, min_size=1, max_size=4, unique=True), data=st.data()
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_proposal_of_any_records(tmp_path, names, data):
    columns = {
        name: data.draw(
            st.lists(st.integers(0, 3), min_size=3, max_size=3)
            | st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3)
            | st.lists(NAMES.map(str.encode), min_size=3, max_size=3)
        )
        for name in names
    }
    records = [
        encode(
            {
                "the label": [row * 37 % 101 % 2],
                **{name: [values[row % 3]] for name, values in columns.items()},
            }
        )
        for row in range(60)
    ]
    file = tmp_path / "records"
    tfrecord.write(file, records)
    sample = Sample([file])
    summary = summarize(sample.records())
    guess = SplitGuess({}, "*", False, "as said")
    try:
        label = choose_label(summary, "the label", lambda name: None)
        proposal = propose("mine", "data", guess, sample, summary, label.name)
    except SluiceError as error:
        assert error.what == "no feature can be used by a model"
        return
    path = tmp_path / "mine.yaml"
    path.write_text(config_text(proposal), encoding="utf-8")

    config = Config.model_validate(read_file(path, "mine.yaml").data)

    expected = {choice.name: choice.spec for choice in proposal.used}
    assert list(config.features or {}) == list(expected)
    assert config.label.feature == "the label"
    parsed = text_format.Parse(schema_text(proposal), schema_pb2.Schema())
    assert parsed == proposal.schema
