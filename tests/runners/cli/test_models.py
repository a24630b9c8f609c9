"""``sluice models``: damaged, unrecorded and retired versions."""

from __future__ import annotations

import json
import shutil

import pytest

from sluice.storage import gcs_storage

pytestmark = pytest.mark.unit


def test_versions_are_listed_newest_first(past, sluice):
    assert (
        "no version of digits has been pushed yet"
        in sluice(*("models", "list", "digits"))[1]
    )
    runs = [past.run(push=True), past.run(push=True)]
    listed = json.loads(sluice("models", "list", "digits", "--json")[1])
    assert [item["facts"]["pipeline_run_id"] for item in listed] == runs[::-1]
    assert listed[0].keys() == {
        *("version", "uri", "digest", "published_at", "facts", "damage", "retired")
    }


def test_the_screen_names_flaws(past, sluice):
    for _ in range(3):
        past.run(push=True)
    serving = past.workspace.serving
    (serving / "2" / "saved_model.pb").write_text("other")
    shutil.copytree(serving / "1", serving / "7")
    code, out, err = sluice(
        "models", "retire", "digits", "v3", "--reason", "bad labels"
    )
    assert code == 0 and out.startswith("retired: "), err
    lines = sluice("models", "list", "digits")[1].splitlines()
    states = {line.split()[0]: line.split()[-2] for line in lines[1:5]}
    assert states == {"7": "unrecorded", "3": "retired", "2": "damaged", "1": "ok"}
    assert lines[5].startswith("version 7 is unrecorded: no record of a push")
    assert lines[6] == "version 3 is retired: bad labels"
    assert lines[7].startswith("version 2 is damaged: files with the digest")


def test_a_bucket_that_does_not_answer_is_exit_code_8(root, sluice, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr(gcs_storage, "RETRY", gcs_storage.RETRY.with_timeout(0.5))
    served = ("--set", "push.serving_dir=gs://bucket/served")
    for arguments in (
        ("models", "list", "digits", *served),
        ("predict", "digits", "x.png", *served),
        # Before any node; it was 2, with the advice to delete the owner file.
        ("run", "digits", *served),
        ("run", "digits", "--set", "data.dir=gs://bucket/data"),
    ):
        code, _, err = sluice(*arguments)
        assert code == 8 and "no connection to the storage service" in err
        assert "gs://bucket/" in err and "storage rm" not in err
