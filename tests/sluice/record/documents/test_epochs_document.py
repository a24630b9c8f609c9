"""The epochs document, from the history or TensorBoard logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tensorboard.compat.proto import event_pb2
from tensorboard.util.tensor_util import make_tensor_proto

from sluice.errors import DataError, WorkspaceError
from sluice.record.documents import epochs_document as module
from sluice.record.documents.epochs_document import epochs_document
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit


def _history(directory: Path, history: object) -> Path:
    (directory / "history.json").write_text(json.dumps(history))
    return directory


def _log(folder: Path, *scalars: tuple[str, int, float]) -> Path:
    folder.mkdir(parents=True)
    events = []
    for tag, step, value in scalars:
        event = event_pb2.Event(step=step)
        event.summary.value.add(tag=tag, tensor=make_tensor_proto(value, dtype="float"))
        events.append(event.SerializeToString())
    path = folder / "events.out.tfevents.1.host.2.v2"
    tfrecord.write(path, events)
    return path


def test_the_history(tmp_path: Path) -> None:
    _history(tmp_path, {"loss": [2.0, None, float("inf")], "val_loss": [3, 2, 1]})
    assert epochs_document(tmp_path) == {
        "source": "history.json",
        "epochs": [1, 2, 3],
        "epochs_left_out": 0,
        "metrics": {"loss": [2.0, None, "Infinity"], "val_loss": [3, 2, 1]},
        "training": None,
    }


def test_how_the_model_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_EPOCHS", 2)
    epochs = [{"epoch": number} for number in (1, 2, 3)]
    facts = {"strategy": "one_device", "epochs": epochs}
    (tmp_path / "training.json").write_text(json.dumps(facts))
    document = epochs_document(_history(tmp_path, {"loss": [5.0, 4.0, 3.0]}))
    assert document is not None
    assert document["training"] == {"strategy": "one_device", "epochs": epochs[1:]}


@pytest.mark.parametrize("text", ["[]", '{"epochs": 3}', '{"epochs": ['])
def test_damaged_facts_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(WorkspaceError, match="history cannot be read") as failure:
        epochs_document(_history(tmp_path, {"loss": [5.0]}))
    assert failure.value.where == str(tmp_path / "training.json")


def test_of_a_long_history_the_last_epochs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_EPOCHS", 2)
    document = epochs_document(_history(tmp_path, {"loss": [5.0, 4.0, 3.0]}))
    assert document is not None
    assert (document["epochs"], document["epochs_left_out"]) == ([2, 3], 1)
    assert document["metrics"] == {"loss": [4.0, 3.0]}


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([1, 2], "found:    list"),
        ({"loss": 0.5}, "loss: 0.5"),
        ({"loss": [0.5, "low"]}, "low"),
        ({"loss": [True]}, "loss"),
        ({"loss": [1, 2], "auc": [1]}, "numbers of epochs .loss: 2, auc: 1"),
    ],
)
def test_a_damaged_history_is_named(tmp_path: Path, history, found: str) -> None:
    _history(tmp_path, history)
    with pytest.raises(WorkspaceError, match=found) as failure:
        epochs_document(tmp_path)
    assert failure.value.where == str(tmp_path / "history.json")


def test_a_history_cut_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text('{"loss": [0.5,')
    with pytest.raises(WorkspaceError, match="history cannot be read"):
        epochs_document(tmp_path)


def test_logs_of_tensorboard_replace_the_history(tmp_path: Path) -> None:
    _log(
        tmp_path / "logs" / "train",
        ("epoch_loss", 0, 4.0),
        ("epoch_loss", 1, 2.0),
        ("batch_loss", 1, 9.0),
    )
    _log(
        tmp_path / "logs" / "validation",
        ("epoch_loss", 1, 3.0),
        ("evaluation_loss_vs_iterations", 40, 3.0),
    )
    assert epochs_document(tmp_path) == {
        "source": "tensorboard",
        "training": None,
        "epochs": [1, 2],
        "epochs_left_out": 0,
        "metrics": {"loss": [4.0, 2.0], "val_loss": [None, 3.0]},
    }


def test_logs_of_several_trainings_are_ignored(tmp_path: Path) -> None:
    _log(tmp_path / "trial1" / "train", ("epoch_loss", 0, 4.0))
    _log(tmp_path / "trial2" / "train", ("epoch_loss", 0, 4.0))
    assert epochs_document(tmp_path) is None


def test_a_model_run_without_either_has_no_document(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("x")
    assert epochs_document(tmp_path) is None


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = _log(tmp_path / "train", ("epoch_loss", 0, 4.0))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match="truncated"):
        epochs_document(tmp_path)
    tfrecord.write(path, [b"\xff\xff"])
    with pytest.raises(WorkspaceError, match="training log cannot be read"):
        epochs_document(tmp_path)


def test_a_missing_artifact_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        epochs_document(tmp_path / "gone")
