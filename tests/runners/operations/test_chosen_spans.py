"""Choice of spans: made once per run, recorded, and kept when the run is resumed."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event, Thread

import pytest

from components.tfrecord_gen.input_files import SPANS_FILE, SpanChoice
from components.tfrecord_gen.select_spans import window_of
from pipeline.config.load import load_config
from pipeline.graph.arguments import ingestion_of
from pipeline.graph.choose_spans import choose_spans
from runners.engine import Observer
from runners.operations.resume import resume
from runners.operations.run import run
from serving.local_store import LocalModelStore
from sluice.errors import ExitCode, UsageError
from sluice.project import own_root
from sluice.record.run_record import RunOptions
from sluice.workspace import Workspace, locate

pytestmark = pytest.mark.unit

SPLITS = ("train", "eval", "test")
SPANS = tuple(f"data.splits.{name}=span-{{SPAN}}/{name}-*" for name in SPLITS)
TRAIN = Path("data/digits/span-1/train-0")


def config():
    return load_config("digits", overrides=SPANS)


def deliver(number):
    for split in SPLITS:
        path = Path(f"data/digits/span-{number}/{split}-0")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{split} of span {number}")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
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

    def __init__(self, before=lambda: None):
        self._before = before
        self.plans = []
        self.windows = []

    def run(self, plan, record, observer):
        self.plans.append(plan)
        self._before()
        stored = plan.run_dir / SPANS_FILE
        stored.write_bytes(plan.spans.to_json())
        settings = ingestion_of(config()).model_dump_json()
        self.windows.append(window_of({"settings": settings, "spans": str(stored)}))
        record.end(ExitCode.INTERRUPTED, "stopped by the test")


class Notes(Observer):
    """Collects notes, and calls a function while the run waits."""

    def __init__(self, on_wait=lambda: None):
        self.lines = []
        self._on_wait = on_wait

    def on_note(self, text):
        self.lines.append(text)
        if text.startswith("waiting"):
            self._on_wait()


def files_of(span):
    return [f"span-{span}/{split}-0" for split in SPLITS]


def names(window):
    return [file.path[len(window.base) + 1 :] for file in window.files]


def run_with(engine, *, wait=False, observer=None, **options):
    given = RunOptions(**options)
    return run(config(), given, wait=wait, observer=observer, engine=engine)


def test_a_span_delivered_during_the_run_is_not_ingested():
    engine, notes = FirstNode(lambda: deliver(2)), Notes()
    record = run_with(engine, observer=notes)
    assert "data: span 1" in notes.lines
    assert record.spans == {"data": [{"span": 1, "version": None, "date": None}]}
    (window,), (plan,) = engine.windows, engine.plans
    assert names(window) == files_of(1)
    assert plan.spans == SpanChoice.load(plan.run_dir / SPANS_FILE)
    assert names(choose_spans(config()).data) == files_of(2)


@pytest.mark.parametrize(
    "change", [TRAIN.unlink, lambda: TRAIN.write_text("half of")], ids=["gone", "new"]
)
def test_a_chosen_file_that_changes_is_an_error(change):
    engine = FirstNode(change)
    record = run_with(engine)
    assert (record.status, record.exit_code) == ("failed", ExitCode.DATA)
    assert record.error and str(TRAIN) in record.error.message
    assert not engine.windows


def test_a_resumed_run_keeps_its_spans():
    first, second = FirstNode(), FirstNode()
    run_with(first)
    deliver(2)
    resume("digits", engine=second)
    assert names(second.windows[0]) == names(first.windows[0])


@pytest.mark.parametrize("known", [True, False])
def test_a_run_whose_data_is_gone_is_not_resumed(known):
    """Also if it was stopped before it had stored its inputs."""
    engine = FirstNode()
    run_with(engine)
    if not known:
        (engine.plans[0].run_dir / "inputs.json").unlink()
    TRAIN.unlink()
    with pytest.raises(UsageError, match="cannot be read") as caught:
        resume("digits", engine=FirstNode())
    assert str(caught.value.where).endswith("span-1/train-0")


def test_a_run_that_waited_chooses_spans_delivered_meanwhile():
    engine, others = FirstNode(), Workspace(Path.cwd() / "workspace" / "digits")
    others.prepare()
    holds, may_end = Event(), Event()

    def deliver_while_waiting():
        deliver(2)
        may_end.set()

    def hold():
        with others.exclusive("another run"):
            holds.set()
            may_end.wait(30)

    other = Thread(target=hold)
    other.start()
    holds.wait(30)
    run_with(engine, wait=True, observer=Notes(deliver_while_waiting))
    other.join()
    assert names(engine.windows[0]) == files_of(2)


def test_recorded_requests_are_those_since_the_push(tmp_path, make_saved_model):
    asked = load_config("digits", overrides=[*SPANS, "data.serving=requests"])
    workspace = locate(asked.root, "digits")
    none = choose_spans(asked).windows["serving"]
    assert none.files == ()

    def record(day: str) -> str:
        path = workspace.requests / day / "120000-ab.tfrecord.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
        path.with_name(".120000-cd.tfrecord.gz.ab12").write_bytes(b"half")
        return str(path)

    today = datetime.now(timezone.utc).date()
    record(str(today - timedelta(days=3)))
    assert choose_spans(asked).windows["serving"] == none, "nothing has been pushed"
    LocalModelStore(workspace.serving).publish(make_saved_model(), facts={})
    assert choose_spans(asked).windows["serving"].files == (), (
        "they were of an earlier model"
    )
    of_today = record(str(today))
    chosen = choose_spans(asked).windows["serving"]
    assert [file.path for file in chosen.files] == [of_today]
    assert ingestion_of(asked, "serving").are_logs
    logs = load_config("digits", overrides=[*SPANS, "data.serving={logs: 'x/*'}"])
    assert ingestion_of(logs, "serving").patterns == {"serving": "x/*"}
    assert ingestion_of(logs, "serving").are_logs
