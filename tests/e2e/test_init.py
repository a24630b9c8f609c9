"""``sluice init`` on records of one's own, and ``sluice run`` of what it wrote."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys

import pytest
from PIL import Image

from sample_data.tf_example import encode
from sluice.project import own_root
from sluice.tfrecords import tfrecord

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]


def photos(row, chance):
    """Returns a photo, with a label that its colour tells."""
    which, file = row % 3, io.BytesIO()
    colour = (90 * which + chance.randrange(30), 200 - 90 * which, 100)
    kind = ("JPEG", "PNG")[row % 2]
    Image.new(("RGB", "RGBA")[row % 2], (24, 20), colour).save(file, kind)
    return {"photo": [file.getvalue()], "label": [b"cat dog ape".split()[which]]}


def customers(row, chance):
    """Returns a customer with what a table of one's own has: gaps, ids, NaN."""
    churned = chance.random() < 0.4
    found = {
        "churned": [b"yes" if churned else b"no"],
        "income": [chance.gauss(50 + 30 * churned, 8)],
        "plan": [chance.choice([b"basic", b"gold"])],
        "city": [b"city %d" % chance.randrange(60)],
        "user_id": [b"u%d" % chance.randrange(10**9)],
        "e_mail": [b"%d@x" % row],
        "visits": [chance.randrange(4)],
        "score": [float("nan") if row == 3 else 1.0 * row],
        "tags": [b"a", b"b"][: 1 + row % 2],
        "embedding": [chance.gauss(churned, 1) for _ in range(3)],
        "review": [b"%d stars for such a %s" % (row, b"bad plan" * churned)],
        "history": [1.0, 2.0][: 1 + row % 2],
    }
    if chance.random() < 0.7:
        found["age"] = [chance.randrange(18, 90)]
    if row % 40 == 0:
        found["refund"] = [1.0]
    return found


@pytest.mark.parametrize(
    ("record", "files", "model", "options"),
    [
        (photos, {"train": 300, "validation": 90, "test": 90}, "cnn", []),
        (customers, {"part": 900}, "wide_deep", ["--label", "churned"]),
    ],
)
def test_a_proposal_runs_unedited_to_a_pushed_model(
    tmp_path, record, files, model, options
):
    chance = random.Random(7)
    (tmp_path / "data").mkdir()
    for name, count in files.items():
        rows = (encode(record(row, chance)) for row in range(count))
        tfrecord.write(tmp_path / "data" / f"{name}-0.tfrecord", rows)

    def sluice(*words):
        done = subprocess.run(
            [sys.executable, "-m", "runners.cli.main", *words, "--json"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(own_root()), "SLUICE_WORKSPACE": ""},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    proposed = sluice("init", "mine", "--examples", "data", *options)
    assert proposed["model"] == model
    done = sluice("run", "mine")
    assert done["status"] == "succeeded"
    assert [push["state"] for push in done["pushes"]] == ["pushed"]
    # What the proposal says is what the gate says: nothing differs.
    assert sluice("schema", "diff", "mine")["changes"] == [
        {
            "id": "score.not_finite",
            "feature": "score",
            "kind": "not_finite",
            "why": {"train": "holds 1 NaN"},
            "refusal": "correct the data, or edit the schema by hand",
        }
    ] * (record is customers)
