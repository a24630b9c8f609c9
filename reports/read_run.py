"""Reads what a page shows of a run: record, documents, progress, the ends of its logs.

Nothing else is read, so that a run in a bucket is drawn as a local one is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from reports import formats
from sluice import progress
from sluice.errors import WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import is_remote

REPORT_FILE = "report.html"
# Copied of a remote run: the record, its job, documents, journal, progress and logs.
_FILES = ("run.json", "job.json", "*.*.json", "*.jsonl", "*.log")
_SPEED = ("duration_s", "examples_per_second")
_TAIL_LINES = 30
_TAIL_BYTES = 16_384
_MAX_EARLIER_RUNS = 100
# The lines of one message, with the line break of its last.
_OF_LIBRARIES = re.compile(
    r"""
    ^(?:
      # Python's logging, with the lines that follow a deprecation of TensorFlow.
      (?:WARNING|INFO|DEBUG):(?:absl|apache_beam|google|h5py|jax|tensorflow|tfx)
        [\w.]*:.*(?:\nInstructions\ for\ updating:\n.*(?:\n`.*)*)?
      # Its warnings in installed packages, with the line of source that is shown.
    | (?:/.*/lib/python3|<frozen\ ).*:\d+:\ \w*Warning:\ .*
        (?:\n\ \ (?!File\ ").*)?
      # The C++ libraries: below errors, or about a second copy of a CUDA library.
    | (?:\d{4}-\d\d-\d\d\ [\d:.]+:\ [IW]\ |[IW]\d{4}\ \d\d:\d\d:).*
    | (?:\d{4}-\d\d-\d\d\ [\d:.]+:\ E\ |E\d{4}\ ).*Unable\ to\ register\ cu.*
    | WARNING:\ All\ log\ messages\ before\ absl::InitializeLog.*
    | To\ enable\ the\ following\ instructions:.*
    )(?:\n|\Z)
    """,
    re.MULTILINE | re.VERBOSE,
)
_ERROR = re.compile(
    r"(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|Fatal Python error"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [EF] |[EF]\d{4} \d\d:\d\d:"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?::|$)"
)


def _reported(run_dir: Path, node: str) -> dict[str, Any] | None:
    """Returns what a node has reported, as the document ``epochs`` has it.

    A resumed training repeats some epochs: the last report counts. None without any.
    """
    try:
        lines, _ = progress.read(run_dir / "progress" / f"{node}.jsonl")
    except (OSError, ValueError):  # A name of 10 kB, or with a null character.
        return None
    epochs = [x for x in lines if x.get("event") == "epoch" and "trial" not in x]
    known = {line["epoch"]: line for line in epochs}
    reports = [known[epoch] for epoch in sorted(known)]
    values = [report.get("metrics", {}) for report in reports]
    names = dict.fromkeys(name for item in values for name in item)
    speed = [report for report in reports if all(key in report for key in _SPEED)]
    if not reports:
        return None
    return {
        "node": node,
        "epochs": sorted(known),
        "metrics": {name: [item.get(name) for item in values] for name in names},
        "training": {"epochs": speed},
    }


@dataclass
class RunData:
    """A run and what its record has.

    Attributes:
      run_dir: its folder.
      record: ``run.json``.
      previous: the last run before it that pushed a model; None if there is none.
      notices: what could not be read, for the top of the page.
      statistics: what sections have read of the documents, by their kind.
    """

    run_dir: Path
    record: RunRecord
    previous: RunData | None = None
    notices: list[str] = field(default_factory=list)
    statistics: dict[str, list[Any]] = field(default_factory=dict)
    _documents: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    def documents(self, kind: str) -> list[dict[str, Any]]:
        """Returns the documents of a kind, such as ``metrics``, with their ``node``.

        One that is missing or damaged is left out, with a notice.
        """
        return [
            {**document, "node": item.node}
            for item in self.record.documents
            if item.kind == kind and (document := self._document(item.path)) is not None
        ]

    def epochs(self) -> list[dict[str, Any]]:
        """Returns the documents ``epochs``, also of unfinished trainings."""
        documents = self.documents("epochs")
        documented = {artifact["node"] for artifact in documents}
        others = [node.id for node in self.record.nodes if node.id not in documented]
        reported = (_reported(self.run_dir, node) for node in others)
        return [*documents, *(artifact for artifact in reported if artifact)]

    @cached_property
    def job(self) -> dict[str, Any]:
        """``job.json``: name and page of a service's job; or else empty."""
        if not (self.run_dir / "job.json").exists():
            return {}
        return self._read_json("job.json", {"name"}) or {}

    def _document(self, path: str) -> dict[str, Any] | None:
        if path not in self._documents:
            self._documents[path] = self._read_json(path, {"kind"})
        return self._documents[path]

    def _read_json(self, path: str, keys: set[str]) -> dict[str, Any] | None:
        """Returns an object with at least these keys, or adds a notice."""
        try:
            content = json.loads((self.run_dir / path).read_text("utf-8"))
            if keys <= content.keys():
                return content
            missing = " and ".join(sorted(keys - content.keys()))
            self.notices.append(f"{path} is damaged: it has no {missing}")
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            self.notices.append(f"{path} cannot be read: {error}")
        return None

    def log_tail(self, name: str) -> str:
        """Returns the last lines of the log of a node, or of ``start``; or ''.

        What libraries warn of is left out.
        """
        lines = without_library_lines(self.log_end(name)).splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def log_end(self, name: str, max_bytes: int = _TAIL_BYTES) -> str:
        """Returns the end of the log of a node, or of ``start``; or ''."""
        try:
            with open(self.run_dir / "logs" / f"{name}.log", "rb") as file:
                length = file.seek(0, 2)
                file.seek(max(0, length - max_bytes))
                text = file.read().decode(errors="replace")
        except (OSError, ValueError):  # ValueError: a name with a null character.
            return ""
        return formats.log_text(text)


@contextmanager
def read_run(address: str | Path) -> Iterator[RunData]:
    """Yields a run.

    Args:
      address: its folder, local or in a bucket, of which a copy is made.

    Raises:
      WorkspaceError: its record cannot be read.
      OSError: there is no such folder.
    """
    with local_copy(str(address), _FILES) as folder:
        run_dir = folder.resolve()
        run = RunData(run_dir, RunRecord.load(run_dir))
        if not is_remote(str(address)):
            run.previous = last_pushed(run)
        yield run


def last_pushed(run: RunData) -> RunData | None:
    """Returns the last run before a run that pushed a model, among the last 100."""
    run_id = run.record.run_id
    earlier = (
        path.parent
        for path in run.run_dir.parent.glob("*/run.json")
        if path.parent.name < run_id
    )
    for run_dir in sorted(earlier, reverse=True)[:_MAX_EARLIER_RUNS]:
        try:
            record = RunRecord.load(run_dir)
        except WorkspaceError:
            continue
        if record.has_pushed:
            return RunData(run_dir, record)
    return None


def without_library_lines(text: str) -> str:
    """Returns the lines of a log without warnings and notices of libraries."""
    return _OF_LIBRARIES.sub("", text)


def is_error(line: str) -> bool:
    """Whether a line says that something has failed, or begins a traceback."""
    return _ERROR.match(line) is not None
