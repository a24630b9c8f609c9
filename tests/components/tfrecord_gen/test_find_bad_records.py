"""Search for records with mixed types or undecodable images."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from components.tfrecord_gen.checking.find_bad_records import (
    find_mixed_types,
    find_undecodable_images,
)
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord

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


@pytest.mark.unit
def test_records_above_the_limit_are_passed_over(write):
    """As in the ingestion, whose limit the config may have raised."""
    file = (write("one", [*INTS, TEXT]), "train")
    longest = max(map(len, INTS))
    assert longest < len(TEXT)
    assert find_mixed_types([file], max_record_bytes=longest) == ()
    assert len(find_mixed_types([file], max_record_bytes=len(TEXT))) == 2


@pytest.mark.unit
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


@pytest.mark.unit
def test_nothing_to_find(write, tmp_path):
    good, text = write("good", [*INTS, EMPTY]), write("text", [TEXT])
    gone = str(tmp_path / "gone")
    assert find_mixed_types([(good, "train"), (gone, "train"), (text, "eval")]) == ()
    assert find_mixed_types([(good, "train"), (text, "train")], max_records=4) == ()


@pytest.mark.tf
def test_images_that_do_not_decode(write):
    png = io.BytesIO()
    Image.effect_noise((9, 9), 90.0).save(png, "PNG")
    cut = png.getvalue()[:-20]
    good = encode({"image": [png.getvalue()], "other": [cut]})
    bad = encode({"image": [png.getvalue(), cut]})
    one, two = write("one", [good, bad]), write("two", [bad, *[good] * 9, *[bad] * 8])
    files = [(one, "train"), (two, "eval")]
    why = f"Invalid PNG data, size {len(cut)}"

    assert find_undecodable_images(files, {"image": 1}) == (
        f"feature 'image' in {one}, record 2: {why}",
        f"feature 'image' in {two}, record 1: {why}",
        *(f"feature 'image' in {two}, record {n}: {why}" for n in (11, 12, 13)),
    )
    assert find_undecodable_images(files, {"missing": 1}) == ()
    assert find_undecodable_images(files, {"image": 1}, max_records=1) == ()
