"""Which feature has values of two types, and in which records."""

from __future__ import annotations

import pytest

from components.tfrecord_gen.checking.find_mixed_types import find_mixed_types
from sample_data.tf_example import encode
from sluice.records import tfrecord

pytestmark = pytest.mark.unit

INTS = [encode({"label": [n], "fare": [0.5]}) for n in range(3)]
EMPTY = encode({"fare": [1.0]})
TEXT = encode({"label": [b"a secret"], "fare": [0.5]})


@pytest.fixture
def write(tmp_path):
    def write(name, records):
        path = tmp_path / name
        tfrecord.write(path, records)
        return str(path)

    return write


def test_within_a_file_and_between_files(write):
    one = write("one", [*INTS, EMPTY, TEXT])
    assert find_mixed_types([(one, "train")]) == (
        f"feature 'label' holds int64 in {one}, record 1",
        f"feature 'label' holds bytes in {one}, record 5",
    )
    good, bad = write("good", INTS), write("bad", [TEXT])
    for split in ("train", None):
        assert find_mixed_types([(good, split), (bad, split)]) == (
            f"feature 'label' holds int64 in {good}, record 1",
            f"feature 'label' holds bytes in {bad}, record 1",
        )


def test_nothing_to_find(write, tmp_path):
    good, text = write("good", [*INTS, EMPTY]), write("text", [TEXT])
    gone = str(tmp_path / "gone")
    assert find_mixed_types([(good, "train"), (gone, "train"), (text, "eval")]) == ()
    assert find_mixed_types([(good, "train"), (text, "train")], max_records=4) == ()
