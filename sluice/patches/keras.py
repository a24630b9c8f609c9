"""Keras: its callback ``BackupAndRestore``."""

from __future__ import annotations

from typing import Any


def take_any_strategy(backup: Any) -> None:
    """Lets ``BackupAndRestore`` take all distribution strategies.

    Why: it restores under all of them, but lists only some.
    Upstream: ``_supported_strategies`` in tf_keras/src/callbacks.py.
    Checked with: tf_keras 2.16 and 2.21.
    Without it: NotImplementedError for CentralStorageStrategy.
    """
    backup._supported_strategies = (object,)


def save_checkpoint(backup: Any, epoch: int) -> None:
    """Saves a checkpoint of ``BackupAndRestore`` at the end of an epoch.

    Why: with a number as ``save_freq`` it saves within epochs, but not at their end.
    Upstream: ``_backup`` in tf_keras/src/callbacks.py.
    Checked with: tf_keras 2.16 and 2.21.
    Without it: a resumed training repeats what came after the last whole number of
    steps, and what early stopping has seen is of another epoch.
    """
    backup._backup(epoch)
