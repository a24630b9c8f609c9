"""Output of ``sluice gc`` and ``sluice lineage``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import click
import pytest

from runners.cli.gc import gc
from runners.cli.lineage import lineage
from runners.retention.training_checkpoints import MAX_AGE_S
from sluice.errors import LockedError, UsageError

pytestmark = pytest.mark.unit


Call = Callable[..., tuple[str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls a verb; returns what it wrote to stdout and to stderr."""

    def call(command: click.Command, *arguments: str) -> tuple[str, str]:
        command.main(list(arguments), standalone_mode=False)
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_gc_prints_what_it_deletes(past: Any, call: Call) -> None:
    past.run(blessed=False)
    kept = past.run(blessed=False)
    would = call(gc, "digits", "--keep", "1", "--dry-run")[0]
    assert "would delete" in would and "would free" in would
    uri = past.workspace.artifacts / "Trainer" / "model" / "2"
    assert f"  {uri}  " in would and uri.is_dir()
    done = call(gc, "digits", "--keep", "1")[0]
    assert f"kept runs: {kept}" in done
    (line,) = [line for line in done.splitlines() if "outputs of nodes" in line]
    assert line.split()[3] == "4"
    assert not uri.exists()


def test_gc_as_json(past: Any, call: Call) -> None:
    dropped = past.run(blessed=False)
    kept = past.run(blessed=False)
    killed = past.execution(kept, "Trainer", state=2)
    out, err = call(gc, "digits", "--keep", "1", "--json")
    document = json.loads(out)
    assert document["deleted"].keys() == {
        "artifacts",
        "runs",
        "inputs",
        "checkpoints",
        "leftovers",
    }
    assert document["deleted"]["runs"] == [dropped]
    assert len(document["deleted"]["artifacts"]) == 4
    assert document["freed_bytes"] > 0
    del document["deleted"], document["freed_bytes"]
    assert document == {
        "schema_version": 1,
        "pipeline": "digits",
        "dry_run": False,
        "closed_executions": [killed],
        "kept_runs": [kept],
    }
    assert "outputs of nodes" in err


def test_gc_keeps_five_runs_unless_told_otherwise(past: Any, call: Call) -> None:
    runs = [past.run(blessed=False) for _ in range(6)]
    document = json.loads(call(gc, "digits", "--json")[0])
    assert document["kept_runs"] == runs[1:]


def test_gc_rewrites_a_missing_record_before_it_deletes_the_journal(
    written: Any, call: Call
) -> None:
    run_dir = written.fail(written.FIRST)
    written.fail(written.SECOND)
    (run_dir / "run.json").unlink()
    call(gc, "digits", "--keep", "1")
    assert [path.name for path in run_dir.iterdir()] == ["run.json"]


def test_gc_keeps_at_least_one_run(past: Any, call: Call) -> None:
    past.run()
    with pytest.raises(click.BadParameter, match="0 is not in the range x>=1"):
        call(gc, "digits", "--keep", "0")


def test_gc_during_a_run_exits_with_6(past: Any, call: Call) -> None:
    past.run()
    with past.workspace.exclusive("sluice run digits"):
        with pytest.raises(LockedError, match="sluice run digits") as raised:
            call(gc, "digits")
        assert "would free" in call(gc, "digits", "--dry-run")[0]
    assert raised.value.exit_code == 6


def test_gc_before_any_run(past: Any, call: Call) -> None:
    past.workspace.metadata_db.unlink()
    assert call(gc, "digits")[0].endswith("kept runs: none\n")


def test_gc_deletes_checkpoints_that_will_hardly_be_needed(
    past: Any, call: Call
) -> None:
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
    with past.workspace.exclusive("sluice run digits"):
        assert "checkpoints" not in call(gc, "digits", "--dry-run")[0]
    document = json.loads(call(gc, "digits", "--json")[0])
    assert document["deleted"]["checkpoints"] == [str(expired)]
    assert list(past.workspace.checkpoints.iterdir()) == [kept.parent]


def test_gc_lists_no_empty_folders(past: Any, call: Call) -> None:
    past.run()
    empty = past.workspace.artifacts / "Trainer/.system/executor_execution/2"
    empty.mkdir(parents=True)
    assert "temporary files" not in call(gc, "digits", "--dry-run")[0]
    document = json.loads(call(gc, "digits", "--json")[0])
    assert document["deleted"]["leftovers"] == [str(empty)]
    assert not empty.exists()


def test_lineage_of_a_version_as_a_tree(past: Any, call: Call) -> None:
    first = past.run()
    second = past.run(push=True)
    lines = [line.rstrip() for line in call(lineage, "digits", "v1")[0].splitlines()]
    assert lines[0] == "Trainer.model  artifact:6  Model"
    facts = dict(line.split(maxsplit=1) for line in lines[3:12])
    assert facts["run"] == second
    assert facts["data"] == "/data/digits  span 0  da7a"
    assert facts["schema"] == "schema.pbtxt  5c5c5c5c5c5c"
    assert facts["code"] == "TFRecordGen c0de1, Trainer 1 module"
    assert facts["served"].endswith(f"by run {second}")
    tree = lines[lines.index("made from") + 1 :]
    assert tree[0] == "Trainer.model  artifact:6"
    assert tree[1].endswith(f"examples: TFRecordGen.examples  artifact:1  run {first}")
    assert (
        "ModelVerdict, model: blessing  artifact:8  blessed" in lines
        and "Pusher, model: pushed_model  artifact:9  pushed as version 1" in lines
    )


def test_lineage_draws_the_past_of_an_artifact_once(past: Any, call: Call) -> None:
    past.run(push=True)
    text = call(lineage, "digits", "Pusher.pushed_model")[0]
    assert text.count("examples: TFRecordGen.examples  artifact:1") == 1
    assert text.count("model: Trainer.model  artifact:2") == 2
    assert text.count("(above)") == 1


def test_lineage_as_json(past: Any, call: Call) -> None:
    run_id = past.run(push=True)
    out, err = call(lineage, "digits", "v1", "--json")
    document = json.loads(out)
    assert document["schema_version"] == 1
    assert (document["pipeline"], document["read_as"]) == ("digits", "version 1")
    assert document["artifact"]["name"] == "Trainer.model"
    assert document["origin"]["run_id"] == run_id
    assert [item["name"] for item in document["artifacts"]] == [
        "TFRecordGen.examples",
        "Trainer.model",
    ]
    assert [item["node"] for item in document["executions"]] == [
        "TFRecordGen",
        "Trainer",
    ]
    assert document["executions"][1]["inputs"] == {"examples": [1]}
    assert [use["node"] for use in document["uses"]] == ["ModelVerdict", "Pusher"]
    assert document["served"][0]["version"] == 1
    assert "Trainer.model  artifact:2" in err


def test_lineage_before_any_run(past: Any, call: Call) -> None:
    with pytest.raises(UsageError, match="has not run yet") as raised:
        call(lineage, "digits", "v1")
    assert "sluice run digits" in str(raised.value)
