"""Asks an exported model in a fresh process, and judges what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from components.serving_check import judge
from components.serving_check.in_process import LoadedModel
from components.serving_check.judge import GATE, Answer, row
from components.serving_check.model_server import ModelServer, ServerError
from components.serving_check.requests import (
    Columns,
    Exported,
    columns_of,
    read_exported,
    read_records,
    write_warm_up,
)
from components.serving_check.settings import Settings
from serving.signatures import EXAMPLES, VALUES, as_json
from sluice.record.verdict import Check, Verdict

_MAX_TIMED_MS = 10_000.0
# Of a batch's records: numbers take up to eight times as much in JSON, and the server
# takes 64 MiB.
_MAX_BATCH_BYTES = 8 << 20
_LOAD, _READY = "load (s)", "how long a fresh process took to load the model"


def check_model(
    saved_model: Path, judged: Path, examples: str, settings: Settings
) -> Verdict:
    """Returns the verdict on a SavedModel; writes its warm-up file if it passes.

    Args:
      saved_model: the folder that is to be pushed.
      judged: that of the model that was evaluated.
      examples: address of an ``Examples`` artifact.
      settings: of the check.

    Raises:
      NodeError: there are no examples.
    """
    try:
        exported = read_exported(saved_model)
    except (OSError, ValueError, DecodeError) as error:
        why = f"the model cannot be read: {error}"
        return Verdict(GATE, (row(_LOAD, why),))
    rows = judge.server_rows(settings.server, exported.version)
    quiet = settings.is_private
    with closing(ModelServer(saved_model, settings.timeout_s, quiet=quiet)) as server:
        # While the server imports TensorFlow.
        asking = _Asking(server, exported, read_records(examples, settings), settings)
        evaluated = asking.in_this_process(judged)
        try:
            load_s = server.wait()
            rows.append(judge.limited_row(_LOAD, load_s, settings.max_load_s, _READY))
            for name in (EXAMPLES, VALUES):
                rows += asking.rows_of(name, evaluated)
            rows += asking.times()
        except ServerError as error:
            rows.append(row("server" if server.is_ready else _LOAD, str(error)))
    verdict = Verdict(GATE, tuple(rows))
    if verdict.passed and not settings.is_private:
        write_warm_up(saved_model, exported, asking.warm_up)
    return verdict


@dataclass
class _Asking:
    """Requests to one server.

    Attributes:
      warm_up: those that a server of the version may ask at its start.
    """

    server: ModelServer
    exported: Exported
    records: Sequence[bytes]
    settings: Settings
    warm_up: list[tuple[str, Columns]] = field(default_factory=list)
    _times_ms: list[float] = field(default_factory=list)

    def in_this_process(self, judged: Path) -> Answer | str:
        """Returns what the evaluated model answers, or why not."""
        try:
            predictions = LoadedModel(judged).predict(self.records)
            asked = range(len(self.records))
            return judge.read_answer(predictions, asked, self.exported.facts)
        except Exception as error:  # The model's operations may raise anything.
            reason = type(error).__name__ if self.settings.is_private else error
            return f"the evaluated model fails in this process: {reason}"[:300]

    def rows_of(self, name: str, evaluated: Answer | str) -> list[Check]:
        """Asks a signature one example and the largest batch, each twice."""
        signatures, _, facts = self.exported
        split, hidden = self.settings.split, self.settings.hidden
        problem = judge.signature_problem(name, signatures, facts, hidden)
        if problem:
            return [row(name, problem, slice=split)]
        sizes = np.cumsum([*map(len, self.records[: self.settings.batch])])
        count = max(1, int((sizes <= _MAX_BATCH_BYTES).sum()))
        asked = [range(1), range(count)] if count > 1 else [range(1)]
        self.warm_up += [(name, self._columns(name, rows)) for rows in asked]
        first = [self._ask(name, rows)[0] for rows in asked]
        again = [self._ask(name, rows)[0] for rows in asked]
        singles = first[:1]
        if name == EXAMPLES and not isinstance(first[0], str):
            singles = self._ask_one_by_one()
        problem = next((x for x in (*first, *singles) if isinstance(x, str)), "")
        actual = f"1 and {count} examples" if count > 1 else "1 example"
        why = "names, types and values of what it answers"
        answers = row(name, problem, slice=split, actual=actual, why=why)
        if problem:
            return [answers]
        alone = Answer(*map(np.concatenate, zip(*singles, strict=True)))
        same = [*zip(again, first, strict=True)]
        others = [(alone, evaluated), (first[-1], evaluated)]
        return [
            answers,
            self._compare(f"{name} again", same, "the first time"),
            self._compare(f"{name} as evaluated", others, "of the evaluated model"),
        ]

    def times(self) -> list[Check]:
        """Returns the rows of the times of single requests."""
        limits = {50: self.settings.max_p50_ms, 99: self.settings.max_p99_ms}
        return [
            judge.limited_row(
                f"p{part} (ms)",
                float(np.percentile(self._times_ms, part)),
                *(limit, "of requests with one example"),
            )
            for part, limit in limits.items()
            if self._times_ms
        ]

    def _columns(self, name: str, rows: range) -> Columns:
        return columns_of(name, self.exported, self.records[rows.start : rows.stop])

    def _ask(self, name: str, rows: range) -> tuple[Answer | str, float]:
        columns = {key: as_json(x) for key, x in self._columns(name, rows).items()}
        values = zip(*columns.values(), strict=True)
        instances = [dict(zip(columns, x, strict=True)) for x in values]
        predictions, ms = self.server.predict(name, instances)
        return judge.read_answer(predictions, rows, self.exported.facts), ms

    def _ask_one_by_one(self) -> list[Answer | str]:
        answers: list[Answer | str] = []
        for index in range(len(self.records)):
            answer, ms = self._ask(EXAMPLES, range(index, index + 1))
            answers.append(answer)
            self._times_ms.append(ms)
            if isinstance(answer, str) or sum(self._times_ms) > _MAX_TIMED_MS:
                break
        return answers

    def _compare(
        self, name: str, pairs: Sequence[tuple[Answer | str, Answer | str]], than: str
    ) -> Check:
        most, facts = self.settings.max_difference, self.exported.facts
        found = [judge.difference(*pair, facts, most, than) for pair in pairs]
        return row(
            name,
            next((problem for _, problem in found if problem), ""),
            slice=self.settings.split,
            limit=f"<= {most:g}",
            actual=max(largest for largest, _ in found),
            why=f"largest difference from the answer {than}",
        )
