"""Choice of spans: made once per run, recorded, and kept when the run is resumed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.exec_properties import ExecProperties
from components.tfrecord_gen.spans.span_choice import (
    SPANS_FILE,
    SPANS_PATH,
    SpanChoice,
    check_unchanged,
)
from components.tfrecord_gen.spans.window import Span, Window
from pipeline.graph.choose_spans import choose_spans
from runners.engine import Capabilities, Observer, Plan
from runners.operations.prepared_run import record_late_spans
from runners.operations.resume import ResumeRequest, resume
from runners.operations.run import RunRequest, run
from sluice.errors import DataError, ExitCode, UsageError
from sluice.project import own_root
from sluice.record.events import (
    Artifact,
    GraphCompiled,
    GraphNode,
    NodeFinished,
    RunStarted,
    SpansChosen,
)
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import NodeState, RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

SPLITS = ("train", "eval", "test")
SPANS = tuple(f"data.splits.{name}=span-{{SPAN}}/{name}-*" for name in SPLITS)
REQUEST = RunRequest(name="digits", overrides=SPANS)


def deliver(number: int) -> None:
    for split in SPLITS:
        path = Path(f"data/digits/span-{number}/{split}-0")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{split} of span {number}")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits config with spans, and one span."""
    for path in ("configs/digits.yaml", "schemas/digits/schema.pbtxt"):
        target = tmp_path / path
        target.parent.mkdir(parents=True)
        target.write_text((own_root() / path).read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    deliver(1)


class FirstNode:
    """Engine that calls a function, then chooses files as the driver of a node does.

    Attributes:
      plans: that it was called with.
      windows: that the node would have ingested.
    """

    capabilities = Capabilities(resume=True)

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self._before = before
        self.plans: list[Plan] = []
        self.windows: list[Window] = []

    def prewarm(self, root: Path) -> None: ...

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        self.plans.append(plan)
        self._before()
        recorder = Recorder(plan.run_dir)
        assert plan.spans
        plan.spans.save(plan.run_dir)
        config = REQUEST.load_config()
        asked = ExecProperties(
            input_base=config.data_uri,
            patterns=config.data.patterns,
            hash_splits=None,
            images=(ImageCheck(feature="image"),),
            max_record_bytes=1,
            window=config.examples.window,
            complete_when=config.examples.complete_when,
        )
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(SPANS_PATH, str(plan.run_dir / SPANS_FILE))
            window = asked.choose("", 0.0)
        try:
            check_unchanged(window)
        except DataError as error:
            recorder.stop(error)
            return recorder.record
        self.windows.append(window)
        recorder.end(ExitCode.INTERRUPTED, "stopped by the test")
        return recorder.record


class ReusesExamples:
    """Engine of a partial run: the examples come from an earlier run, with span 1."""

    capabilities = Capabilities()

    def __init__(self, base_run_id: str) -> None:
        self._base_run_id = base_run_id

    def prewarm(self, root: Path) -> None: ...

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        recorder = Recorder(plan.run_dir)
        nodes = (
            GraphNode("TFRecordGen", "TFRecordGen", (), action="reuse"),
            GraphNode("Trainer", "Trainer", ("TFRecordGen",)),
        )
        recorder.apply(GraphCompiled(nodes=nodes, base_run_id=self._base_run_id))
        recorder.apply(ingested("cached", "[[1, null]]"))
        recorder.end(ExitCode.INTERRUPTED, "stopped by the test")
        return recorder.record


def ingested(state: NodeState, spans: str) -> NodeFinished:
    """Returns the event of ``TFRecordGen``, whose driver has pinned spans."""
    examples = Artifact(1, "Examples", "/examples", {"spans": spans})
    return NodeFinished(
        node="TFRecordGen", state=state, outputs={"examples": [examples]}
    )


class Notes(Observer):
    """Collects notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_note(self, text: str) -> None:
        self.lines.append(text)


def files_of(span: int) -> list[str]:
    return [f"span-{span}/{split}-0" for split in SPLITS]


def names(window: Window) -> list[str]:
    return [window.relative(file) for file in window.files]


def test_a_span_delivered_during_the_run_is_not_ingested() -> None:
    engine, notes = FirstNode(lambda: deliver(2)), Notes()

    record = run(REQUEST, notes, engine)

    assert "data: span 1" in notes.lines
    assert record.spans == {"data": [{"span": 1, "version": None, "date": None}]}
    (window,), (plan,) = engine.windows, engine.plans
    assert names(window) == files_of(1)
    assert plan.spans == SpanChoice.load(plan.run_dir)
    assert plan.run_dir.name == record.run_id
    assert names(choose_spans(REQUEST.load_config()).data) == files_of(2)


def test_a_partial_run_records_the_spans_that_it_reuses() -> None:
    """Not those that are newest on disk when it begins; nor does it show them."""
    base = run(REQUEST, engine=FirstNode())
    deliver(2)
    notes, engine = Notes(), ReusesExamples(base.run_id)
    record = run(replace(REQUEST, from_nodes=("Trainer",)), notes, engine)
    assert not [line for line in notes.lines if line.startswith("data: ")]
    (note,) = record.notes
    assert note.startswith(f"differs from run {base.run_id}, reused: data: ")
    assert record.spans == base.spans
    assert record.spans == {"data": [{"span": 1, "version": None, "date": None}]}


def test_a_partial_run_that_ends_before_ingestion_records_no_spans() -> None:
    request = replace(REQUEST, to_nodes=("ImportSchemaGen",))
    assert run(request, engine=FirstNode()).spans == {}


def test_spans_chosen_by_the_driver_are_recorded(
    tmp_path: Path, run_started: RunStarted
) -> None:
    """A plan without spans leaves the choice to the nodes."""
    recorder = Recorder(tmp_path)
    recorder.apply(run_started)
    recorder.apply(ingested("ran", "[[7, 2], [8, null]]"))
    record_late_spans(recorder)
    event = Journal(recorder.run_dir).events()[-1]
    assert isinstance(event, SpansChosen)
    expected = [Span(7, 2).to_dict(), Span(8).to_dict()]
    assert event.spans == {"data": expected}
    record_late_spans(recorder)
    assert len([e for e in Journal(recorder.run_dir).events() if e == event]) == 1


def test_the_spans_that_were_skipped_are_in_the_record() -> None:
    Path("data/digits/span-2").mkdir()
    Path("data/digits/span-2/train-0").write_text("without eval")

    record = run(REQUEST, engine=FirstNode())

    assert any("span 2 was not taken" in note for note in record.notes)


TRAIN = Path("data/digits/span-1/train-0")


@pytest.mark.parametrize(
    "change", [TRAIN.unlink, lambda: TRAIN.write_text("half of")], ids=["gone", "new"]
)
def test_a_chosen_file_that_changes_is_an_error(
    change: Callable[[], object],
) -> None:
    engine = FirstNode(change)

    record = run(REQUEST, engine=engine)

    assert (record.status, record.exit_code) == ("failed", ExitCode.DATA)
    assert record.error and str(TRAIN) in record.error.message
    assert not engine.windows


def test_a_resumed_run_keeps_its_spans() -> None:
    first, second = FirstNode(), FirstNode()
    run(REQUEST, engine=first)
    deliver(2)
    os.utime(TRAIN, (1, 1))

    resume(ResumeRequest(name="digits"), engine=second)

    assert names(second.windows[0]) == names(first.windows[0])


@pytest.mark.parametrize("known", [True, False])
def test_a_run_whose_data_is_gone_is_not_resumed(known: bool) -> None:
    """Also if it was stopped before it had stored its inputs."""
    engine = FirstNode()
    run(REQUEST, engine=engine)
    if not known:
        (engine.plans[0].run_dir / "inputs.json").unlink()
    TRAIN.unlink()

    with pytest.raises(UsageError, match="cannot be read") as caught:
        resume(ResumeRequest(name="digits"), engine=FirstNode())
    assert str(caught.value.where).endswith("span-1/train-0")


def test_a_run_that_waited_chooses_spans_delivered_meanwhile() -> None:
    engine, others = FirstNode(), Workspace(Path.cwd() / "workspace" / "digits")
    others.prepare()

    class Deliver(Observer):
        def on_note(self, text: str) -> None:
            if text.startswith("waiting"):
                deliver(2)
                may_end.set()

    def hold() -> None:
        with others.exclusive("another run"):
            holds.set()
            may_end.wait(30)

    holds, may_end = Event(), Event()
    other = Thread(target=hold)
    other.start()
    holds.wait(30)
    record = run(replace(REQUEST, wait=True), Deliver(), engine)
    other.join()

    assert names(engine.windows[0]) == files_of(2)
    assert SpanChoice.load(others.run_dir(record.run_id)) == engine.plans[0].spans
