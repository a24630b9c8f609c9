"""Output of ``sluice gc`` and ``sluice lineage``."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

from runners.cli.gc import command as gc
from runners.cli.lineage import command as lineage
from runners.retention.training_checkpoints import MAX_AGE_S
from sluice.errors import LockedError

pytestmark = pytest.mark.unit


@pytest.fixture
def call(capsys):
    """Calls a verb; returns what it wrote to stdout and to stderr."""

    def call(command, *arguments):
        command.main(list(arguments), standalone_mode=False)
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_gc_keeps_so_many_versions_and_the_baseline(past, call, sluice):
    runs = [past.run(push=True) for _ in range(4)]
    for version in ("3", "4"):
        sluice("models", "retire", "digits", version, "--reason", "wrong labels")
    version_dirs = [past.workspace.serving / str(n) for n in range(1, 5)]
    would = call(gc, "digits", "--keep", "1", "--keep-versions", "1", "--dry-run")[0]
    assert "pushed versions would be deleted: 2, " in would
    assert all(path.is_dir() for path in version_dirs)

    out, _ = call(gc, "digits", "--keep", "1", "--keep-versions", "1", "--json")

    # 4 is served, and 2 has the baseline.
    deleted = [str(version_dirs[0]), str(version_dirs[2])]
    assert json.loads(out)["deleted"]["versions"] == deleted
    assert json.loads(out)["kept_runs"] == [runs[1], runs[3]]
    _, listed, _ = sluice("models", "list", "digits", "--json")
    assert [item["version"] for item in json.loads(listed)] == [4, 2]
    assert not past.made_by(runs[0], "Trainer.model").exists()
    assert past.run(push=True) and (past.workspace.serving / "5").is_dir()


def test_gc_during_a_run_exits_with_6(past, call):
    past.run()
    for option in ((), ("--dry-run",)):
        with (
            past.workspace.exclusive("sluice run digits"),
            pytest.raises(LockedError, match="sluice run digits") as raised,
        ):
            call(gc, "digits", *option)
        assert raised.value.exit_code == 6


def test_gc_before_any_run(past, call):
    past.workspace.metadata_db.unlink()
    assert call(gc, "digits")[0].endswith("kept runs: none\n")
    shutil.rmtree(past.workspace.root)
    deleted = json.loads(call(gc, "digits", "--json")[0])["deleted"]
    kinds = ("artifacts", "runs", "inputs", "checkpoints", "versions")
    assert deleted == {kind: [] for kind in kinds}


def test_gc_deletes_checkpoints_that_will_hardly_be_needed(past, call):
    past.run()
    expired, kept = (past.workspace.checkpoints / n / "key" for n in ("Old", "New"))
    for folder in (expired, kept):
        folder.mkdir(parents=True)
        (folder / "ckpt-1.index").write_text("index")
    long_ago_s = time.time() - MAX_AGE_S - 60
    os.utime(expired, (long_ago_s, long_ago_s))
    out, _ = call(gc, "digits", "--dry-run")
    assert "checkpoints of trainings" in out
    assert str(expired) in out and str(kept) not in out
    document = json.loads(call(gc, "digits", "--json")[0])
    assert document["deleted"]["checkpoints"] == [str(expired)]
    assert list(past.workspace.checkpoints.iterdir()) == [kept.parent]


def test_lineage_of_a_version(past, call):
    first = past.run()
    second = past.run(push=True)
    lines = [line.rstrip() for line in call(lineage, "digits", "v1")[0].splitlines()]
    assert lines[0] == "Trainer.model  artifact:6  Model"
    head = lines[3 : lines.index("made by") - 1]
    facts = dict(line.split(maxsplit=1) for line in head if line[:1].islower())
    assert facts["run"] == second
    assert facts["data"] == "/data/digits  span 0  da7a"
    assert facts["schema"] == "schema.pbtxt  5c5c5c5c5c5c"
    assert f"by run {second}: " in facts["served"]
    made_by = lines[lines.index("made by") + 1 :]
    assert made_by[0] == f"TFRecordGen, run {first}: no input"
    assert made_by[1].startswith(f"Trainer, run {second}: TFRecordGen.examples ")
    used = lines[lines.index("used by") + 1 :]
    assert used[0].startswith("ModelVerdict: ModelVerdict.blessing  artifact:8")
    assert used[-1] == "Pusher: Pusher.pushed_model  artifact:9"
