"""Epochs of a training without a result, from the progress that its node has reported.

A training that runs, has failed or was killed has no document of its epochs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sluice import progress

_SPEED = ("duration_s", "examples_per_second")


class EpochReports:
    """The last report of each epoch, by the file of a node's progress.

    Only what is new is read: a training of days reports often, and a live page reads
    it every second.
    """

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, dict[int, dict[str, Any]]]] = {}

    def of(self, run_dir: Path, node: str) -> dict[str, Any] | None:
        """Returns what a node has reported, as the document ``epochs`` has it.

        A resumed training repeats some epochs. None if there is none yet.
        """
        path = run_dir / "progress" / f"{node}.jsonl"
        offset, known = self._read.get(path, (0, {}))
        try:
            lines, end = progress.read(path, offset)
        except (OSError, ValueError):  # A name of 10 kB, or with a null character.
            return None
        epochs = (x for x in lines if x.get("event") == "epoch" and "epoch" in x)
        known = {**known, **{line["epoch"]: line for line in epochs}}
        self._read[path] = end, known
        reports = [known[epoch] for epoch in sorted(known)]
        return _as_artifact(node, reports) if reports else None


def _as_artifact(node: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    values = [report.get("metrics", {}) for report in reports]
    names = dict.fromkeys(name for item in values for name in item)
    speed = [
        {"input_bound": None, **report}
        for report in reports
        if all(key in report for key in _SPEED)
    ]
    return {
        "node": node,
        "epochs": [report["epoch"] for report in reports],
        "metrics": {name: [item.get(name) for item in values] for name in names},
        "training": {"epochs": speed},
    }
