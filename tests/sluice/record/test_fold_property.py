"""``run.json`` is the fold of the journal, for random events."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from dataclasses import replace
from datetime import timezone
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.record.events import (
    Artifact,
    Event,
    NodeFinished,
    RunStarted,
    RunUnchanged,
    parse_event,
)
from sluice.record.fold import Fold, fold
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import ArtifactRecord, NodeRecord, RunRecord

pytestmark = pytest.mark.unit

_SETTINGS = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_NODES = st.sampled_from(["Trainer", "Pusher", "DataGate"])
_NUMBERS = st.floats(0, 1e6, allow_nan=False)
_TIMES = st.datetimes(timezones=st.just(timezone.utc)).map(
    lambda time: time.isoformat(timespec="microseconds")
)
_JSON = st.dictionaries(_TEXTS, st.none() | st.integers() | _NUMBERS | _TEXTS)
_GATES = st.builds(
    lambda gate, passed: {"gate": gate, "passed": passed, "override": None, "rows": []},
    st.sampled_from(["data", "model"]),
    st.booleans(),
)
_ARTIFACTS = st.builds(Artifact, st.integers(1, 9), _TEXTS, _TEXTS, _JSON)
_SPANS = st.dictionaries(_TEXTS, st.lists(_JSON, max_size=2), max_size=2)
_BY_KEY = st.dictionaries(_TEXTS, st.lists(_ARTIFACTS, max_size=2), max_size=2)
_GATE_TUPLES = st.lists(_GATES, max_size=2).map(tuple)
_NODE_RECORDS = st.builds(
    NodeRecord,
    id=_NODES,
    kind=_TEXTS,
    duration_s=st.none() | _NUMBERS,
    cache=st.none() | _JSON,
    progress=st.none(),
)
_FIELDS: dict[type[Any], dict[str, st.SearchStrategy[Any]]] = {
    RunStarted: {"config": _JSON},
    NodeFinished: {
        "duration_s": _NUMBERS,
        "inputs": _BY_KEY,
        "outputs": _BY_KEY,
        "cache": st.none() | _JSON,
        "gates": _GATE_TUPLES,
    },
    RunUnchanged: {
        "nodes": st.lists(_NODE_RECORDS, max_size=2).map(tuple),
        "gates": _GATE_TUPLES,
        "artifacts": st.dictionaries(_TEXTS, st.builds(ArtifactRecord), max_size=2),
    },
}


def _of(kind: type[Any]) -> st.SearchStrategy[Event]:
    named = {"at": _TIMES, "event": st.just(kind.event), **_FIELDS.get(kind, {})}
    has = kind.__dataclass_fields__
    if "node" in has:
        named["node"] = _NODES
    if "wait_s" in has:
        named["wait_s"] = _NUMBERS
    if "spans" in has:
        named["spans"] = _SPANS
    if "digests" in has:
        named["digests"] = _JSON
    return st.builds(kind, **named)


_STARTS = _of(RunStarted)
_EVENTS = st.lists(
    st.one_of([_of(kind) for kind in get_args(Event) if kind is not RunStarted]),
    max_size=12,
)


def _as_json(record: RunRecord) -> Any:
    return json.loads(json.dumps(record.to_dict()))


@given(_STARTS, _EVENTS)
@_SETTINGS
def test_every_sequence_of_events_makes_a_record(
    start: RunStarted, events: list[Event]
) -> None:
    everything = [start, *events]
    before = deepcopy(everything)
    record = fold(everything)
    folded = Fold()
    for event in everything:
        folded.apply(event)
    assert folded.record == record
    assert everything == before  # It is pure: the events stay as they are.
    assert fold([parse_event(event.to_dict()) for event in everything]) == record
    assert (record.status == "running") <= (record.exit_code is None)


@given(_STARTS, _EVENTS, st.data())
@_SETTINGS
def test_run_json_is_the_fold_of_the_journal(
    start: RunStarted, events: list[Event], data: st.DataObject
) -> None:
    """Also where several write, and where lines are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        recorders = [Recorder(run_dir), Recorder(run_dir)]
        for event in [start, *events]:
            recorder = data.draw(st.sampled_from(recorders))
            if data.draw(st.booleans()):
                with (run_dir / "journal.jsonl").open("ab") as file:
                    file.write(b'{"event": "note", "te')
            recorder.apply(replace(event, at=""))
            written = json.loads((run_dir / "run.json").read_text())
            assert _as_json(recorder.record) == written
        assert _as_json(fold(Journal(run_dir).events())) == written
        assert _as_json(Recorder(run_dir).record) == written
