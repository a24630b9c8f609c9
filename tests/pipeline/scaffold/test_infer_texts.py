"""The texts of proposed configs and schemas."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from PIL import Image
from ruamel.yaml import YAML
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.choose_label import choose_label
from pipeline.scaffold.config_text import config_text
from pipeline.scaffold.find_examples import find_examples
from pipeline.scaffold.guess_splits import guess_splits
from pipeline.scaffold.propose import Proposal, propose
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.schema_text import schema_text
from pipeline.scaffold.summarize import Summary, summarize
from pipeline.scaffold.write_proposal import write_proposal
from sample_data.tf_example import encode
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

STRANGE = (
    "y",
    "no",
    "1st",
    "a: b",
    "#x",
    "image/class",
    "ä ö",
    'q"\\',
    "l\nb",
    "\x85~",
)


def proposed(tmp_path: Path, named: str = "label", /, count: int = 120, **columns):
    records = []
    for row in range(count):
        values = {name: column(row) for name, column in columns.items()}
        known = {name: [v] for name, v in values.items() if v is not None}
        records.append(encode(known))
    tfrecord.write(tmp_path / "all.tfrecord", records)
    examples = find_examples("*.tfrecord", None, tmp_path)
    sample = Sample([examples.path(file) for file in examples.files])
    summary = summarize(sample.records())
    return propose("mine", "data", guess_splits(examples), sample, summary, named)


def parsed(proposal: Proposal) -> dict:
    return YAML(typ="safe").load(config_text(proposal))


@pytest.mark.parametrize(
    ("kinds", "written"),
    [(["PNG"], {}), (["PNG", "GIF"], {"formats": ["png", "gif"]})],
)
def test_gif_is_listed_only_if_there_are_gifs(tmp_path, kinds, written):
    """The gate would stop them else, and what is proposed is to run as it is."""

    def image(row: int) -> bytes:
        target = io.BytesIO()
        picture = Image.new("L", (8, 8), row % 200)
        picture.save(target, kinds[row % len(kinds)])
        return target.getvalue()

    proposal = proposed(tmp_path, photo=image, label=lambda row: row % 3)

    assert parsed(proposal)["examples"] == {"images": written}


def test_strange_names_and_values(tmp_path):
    columns: dict[str, Any] = {
        name: lambda n: STRANGE[n % 7].encode() for name in STRANGE
    }
    proposal = proposed(tmp_path, "y", **columns, x=lambda n: n / 7)

    config, schema = parsed(proposal), schema_text(proposal)

    assert config["label"] == {"feature": "y"}
    # All but "x" say what the label is, as they have its values.
    assert list(config["features"]) == ["x"]
    assert text_format.Parse(schema, schema_pb2.Schema()) == proposal.schema
    domain = next(d for d in proposal.schema.string_domain if d.name == "ä ö")
    assert sorted(domain.value) == sorted(STRANGE[:7])


def test_strange_names_as_features(tmp_path):
    columns: dict[str, Any] = {
        name: lambda n, at=at: n % (3 + at) for at, name in enumerate(STRANGE)
    }
    columns = {name: column for name, column in columns.items() if name != "y"}
    proposal = proposed(tmp_path, label=lambda n: n * 37 % 101 % 2, **columns)

    features = parsed(proposal)["features"]

    assert set(features) == set(columns)
    assert {spec["kind"] for spec in features.values()} == {"vocabulary"}


def test_every_line_fits_on_the_screen(tmp_path):
    proposal = proposed(
        tmp_path,
        label=lambda n: n % 3,
        a_name_that_is_long_but_not_too_long=lambda n: f"{n % 30}".encode(),
        latitude=lambda n: n / 7,
        user_name_id=lambda n: n,
    )

    lines = config_text(proposal).splitlines()

    assert [line for line in lines if len(line) > 88] == []
    assert config_text(proposal).endswith("\n")
    assert not any(line != line.rstrip() for line in lines)


def test_two_classes_and_which_is_the_positive_one(tmp_path):
    def classes(*values):
        column = [values[0]] * 2 + [values[1]]
        made = proposed(tmp_path, label=lambda n: column[n % 3], x=lambda n: n / 7)
        return parsed(made)["label"].get("classes")

    assert classes(0, 1) == [0, 1]
    assert classes(2, 1) == [1, 2]
    assert classes(b"Yes", b"No") == ["No", "Yes"]
    assert classes(b"cat", b"dog") == ["cat", "dog"]
    assert classes(b"dog", b"cat") == ["dog", "cat"]
    assert classes(0, 5) is None


def test_the_limit_is_above_a_constant_prediction(tmp_path):
    made = proposed(tmp_path, label=lambda n: min(n % 10, 2), x=lambda n: n / 7)

    config = parsed(made)

    assert made.majority == 0.8
    assert config["evaluate"]["thresholds"][0] == {
        "metric": "accuracy",
        "lower_bound": 0.81,
    }
    assert "largest class has 80.0%" in config_text(made)


def test_models(tmp_path):
    def model(**columns):
        return proposed(tmp_path, label=lambda n: n % 3, **columns).model

    assert model(x=lambda n: n / 7) == "dense"
    assert model(x=lambda n: n / 7, c=lambda n: n % 5) == "wide_deep"


def test_hash_splits_by_the_person(tmp_path):
    made = proposed(
        tmp_path,
        count=300,
        label=lambda n: n % 3,
        patient=lambda n: f"p{n % 40}".encode(),
        x=lambda n: n / 7,
    )

    assert parsed(made)["data"] == {
        "dir": "data",
        "files": "*.tfrecord",
        "hash_splits": {"train": 8, "eval": 1, "test": 1, "by": "patient"},
    }
    assert "patient" not in parsed(made)["features"]


def test_sensitive_values_are_in_neither_text(tmp_path):
    made = proposed(
        tmp_path,
        label=lambda n: n % 3,
        home_address=lambda n: b"Elm Street" if n % 2 else b"Oak Road",
        x=lambda n: n / 7,
    )

    assert parsed(made)["sensitive"] == ["home_address"]
    for text in (config_text(made), schema_text(made)):
        assert "Elm" not in text
        assert "home_address" in text


def test_a_sensitive_name_overrides_other_types(tmp_path):
    made = proposed(
        tmp_path,
        count=300,
        label=lambda n: n % 3,
        customer_email_id=lambda n: f"c{n % 40}".encode(),
        phone=lambda n: n if n % 2 else b"none",
        x=lambda n: n / 7,
    )

    assert made.split_by == "customer_email_id"
    assert parsed(made)["sensitive"] == ["customer_email_id", "phone"]


def test_features_with_nan_get_a_rule_and_are_not_used(tmp_path):
    made = proposed(
        tmp_path,
        label=lambda n: n % 3,
        bad=lambda n: float("nan") if n == 5 else n / 7,
        x=lambda n: n / 7,
    )

    assert parsed(made)["validate"]["rules"] == [
        {"feature": "bad", "anomaly": "not_finite", "action": "warn"}
    ]
    assert "bad" not in parsed(made)["features"]
    assert "bad is left out: NaN in 1, infinite in 0 records" in made.warnings


def test_warnings_of_a_proposal(tmp_path):
    made = proposed(
        tmp_path,
        label=lambda n: 9 if n == 3 else n % 3,
        row=lambda n: n,
        same=lambda n: 4,
        x=lambda n: n / 7,
    )

    assert made.warnings == (
        "the label's values have gaps: 6 of the classes 0 to 9 were not seen",
        "1 of the label's classes has fewer than 10 records",
        "row is left out: 120 values, a running number",
        "same is left out: it has one value in all records that have it",
    )


def test_no_usable_feature(tmp_path):
    with pytest.raises(DataError, match="no feature can be used") as caught:
        proposed(tmp_path, label=lambda n: n % 3, row=lambda n: n)
    assert caught.value.examples == ("row: 120 values, a running number",)


def counted(**columns) -> Summary:
    return summarize(
        encode({name: [column(n)] for name, column in columns.items()})
        for n in range(100)
    )


TWO = counted(clicked=lambda n: n % 2, bought=lambda n: n % 2, x=lambda n: n / 7)
NONE = counted(day=lambda n: n % 7, label=lambda n: n / 7)


def never(feature: str) -> str | None:
    return None


def test_without_a_terminal_the_likeliest_label_is_chosen():
    chosen = choose_label(TWO, None, never)

    assert chosen.name == "bought"
    assert "it could also be clicked: choose with --label" in chosen.why


def test_a_name_like_is_mobile_is_weak_evidence_for_a_label():
    doubtful = counted(is_mobile=lambda n: n % 2, bought=lambda n: n % 2)
    sure = counted(is_mobile=lambda n: n % 2, churned=lambda n: n % 2)

    chosen = choose_label(doubtful, None, never)
    assert "it could also be bought" in chosen.why
    # A word that says what is predicted goes before one that only asks.
    assert choose_label(sure, None, never).name == "churned"


def test_no_label():
    with pytest.raises(UsageError, match="looks like the label") as caught:
        choose_label(NONE, None, "init a --label {}".format)
    error = caught.value
    assert error.actual == "features that could be: day"
    assert error.examples == (
        "label: it is FLOAT; classes are whole numbers or strings",
    )
    correct = "write 'label' into every record as one whole number or string, from a "
    correct += "few classes"
    assert error.hint == (f"{correct}; or predict another feature: init a --label day")
    with pytest.raises(UsageError, match="looks like the label") as caught:
        choose_label(NONE, None, never)
    assert caught.value.hint == correct


def test_a_requested_label_that_is_not_usable():
    with pytest.raises(UsageError, match="no feature 'clickd'") as caught:
        choose_label(TWO, "clickd", never)
    assert caught.value.hint == "did you mean 'clicked'?"
    with pytest.raises(UsageError, match="'x' cannot be the label") as caught:
        choose_label(TWO, "x", never)
    assert "FLOAT" in (caught.value.actual or "")


def write(texts: dict[Path, str], *, replace: bool) -> None:
    with write_proposal(texts, replace=replace):
        pass


def test_files_are_written_both_or_neither(tmp_path):
    first, second = tmp_path / "a" / "b" / "one", tmp_path / "two"
    second.write_text("mine")

    with pytest.raises(UsageError, match="already") as caught:
        write({first: "1", second: "2"}, replace=False)
    assert caught.value.where == str(second)
    assert not first.exists()
    write({first: "1", second: "2"}, replace=True)
    assert (first.read_text(), second.read_text()) == ("1", "2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "two"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_failed_mkdir_removes_the_other_file(tmp_path, replace):
    (tmp_path / "file").write_text("")
    texts = {tmp_path / "one": "1", tmp_path / "file" / "two": "2"}

    with pytest.raises(UsageError, match="cannot be written"):
        write(texts, replace=replace)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_replaced_files_are_restored_after_a_failure(tmp_path):
    schema, config = tmp_path / "schema", tmp_path / "file" / "config"
    schema.write_text("reviewed")
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="cannot be written"):
        write({schema: "new", config: "new"}, replace=True)
    assert schema.read_text() == "reviewed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "schema"]


@pytest.mark.parametrize("replace", [False, True])
def test_files_are_restored_if_the_body_raises(tmp_path, replace):
    old, new = tmp_path / "old", tmp_path / "new"
    if replace:
        old.write_text("reviewed")

    with (
        pytest.raises(RuntimeError, match="refused"),
        write_proposal({old: "1", new: "2"}, replace=replace),
    ):
        assert (old.read_text(), new.read_text()) == ("1", "2")
        raise RuntimeError("refused")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == ({"old": "reviewed"} if replace else {})


def test_concurrent_writers_get_one_winner(tmp_path):
    start = threading.Barrier(8)
    lost = []

    def one(number: int) -> None:
        start.wait()
        try:
            write({tmp_path / "config": str(number) * 9999}, replace=False)
        except UsageError:
            lost.append(number)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (winner,) = set(range(8)) - set(lost)
    assert (tmp_path / "config").read_text() == str(winner) * 9999
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
