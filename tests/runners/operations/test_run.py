"""What ``run`` refuses before a run begins, and tags."""

import pytest

from pipeline.config.load import load_config
from runners.operations.resume import resume
from runners.operations.run import run
from serving.local_store import LocalModelStore
from sluice.errors import UsageError, WorkspaceError
from sluice.record.run_record import RunOptions, RunRecord
from tests.runners.memory_engine import MemoryEngine

pytestmark = pytest.mark.unit


def run_digits(*overrides, tags=(), **options):
    config = load_config("digits", overrides=overrides)
    return run(config, RunOptions(**options), tags=tags, engine=MemoryEngine())


@pytest.mark.parametrize(
    ("strategy", "what"),
    [("tpu", "needs a TPU"), ("multi_worker", "needs workers")],
)
def test_a_strategy_that_this_machine_lacks_begins_no_run(written, strategy, what):
    override = f"train.strategy={strategy}"
    with pytest.raises(UsageError, match=what) as info:
        run_digits(override)
    assert info.value.where == f"--set {override}"
    assert written.workspace.run_ids() == []
    assert run_digits(override, to_nodes=["Transform"]).status == "succeeded"


def test_workers_on_this_machine_need_no_tf_config(written):
    overrides = ("train.strategy=multi_worker", "train.processes=2")
    assert run_digits(*overrides).status == "succeeded"


def test_an_unknown_node_is_refused(written):
    for options in ({"forced": ["Trian"]}, {"to_nodes": ["Trian"]}):
        with pytest.raises(UsageError, match="'Trian'"):
            run_digits(**options)
    assert written.workspace.run_ids() == []


def test_a_trial_ends_with_the_model_gate(written):
    for late in ("Pusher", "AcceptData"):
        with pytest.raises(UsageError, match=f"(?s)a trial ends .* {late}"):
            run_digits(trial=True, to_nodes=[late])
    assert written.workspace.run_ids() == []
    ends = ["ModelVerdict", "ServingCheck"]
    assert run_digits(trial=True).options.to_nodes == ends
    # What Exports makes needs a blessing, which a trial does not give.
    for override in ("serving_check=false", "export=[tflite]"):
        assert run_digits(override, trial=True).options.to_nodes == ends[:1]
    record = run_digits(trial=True, to_nodes=["Transform"])
    assert record.options.to_nodes == ["Transform"]
    assert not written.workspace.complete_file.exists()
    with pytest.raises(UsageError) as raised:
        resume("digits")
    assert (raised.value.hint or "").endswith("try digits")


@pytest.mark.parametrize("options", [{}, {"to_nodes": ["Transform"]}])
def test_no_run_begins_with_lost_metadata(written, make_saved_model, options):
    """Found: what a part of the graph writes was taken for the whole history."""
    LocalModelStore(written.workspace.serving).publish(make_saved_model(), facts={})
    with pytest.raises(WorkspaceError, match="metadata is missing"):
        run_digits(**options)
    assert written.workspace.run_ids() == []


def test_tags_are_in_the_record(written):
    record = run_digits(tags=("night", "team=a=b", "note="))
    assert record.tags == {"night": "", "team": "a=b", "note": ""}
    run_dir = written.workspace.run_dir(record.run_id)
    assert RunRecord.load(run_dir).tags == record.tags


@pytest.mark.parametrize("tag", ["", "=a", "a b=c", "k=\n"])
def test_tags_of_another_form_begin_no_run(written, tag):
    with pytest.raises(UsageError, match="is not a tag"):
        run_digits(tags=(tag,))
    assert written.workspace.run_ids() == []
