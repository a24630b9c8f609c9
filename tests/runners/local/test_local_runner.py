"""``LocalRunner`` with foreign TFX pipelines: failures, resumes, the cache."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import ExitCode, NodeError, UsageError
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.tf

DEADLINE_S = 120.0


def test_a_failed_node_stops_only_its_downstream_nodes(foreign, own) -> None:
    from tfx.proto.orchestration import platform_config_pb2
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    no_docker = f"unix://{foreign.root}/no-docker.sock"
    docker = platform_config_pb2.DockerPlatformConfig(docker_server_url=no_docker)
    raises = own.Raise(message="the user says no")
    needs_it = own.Copy(data=raises.outputs["out"], trace=foreign.trace("NeedsIt"))
    spec = own.DrivenSpec(
        trace=foreign.trace("Reports"), text="", out=Channel(type=Examples)
    )
    make = own.Make(trace=foreign.trace("Make"))
    further = own.Copy(data=make.outputs["out"], trace=foreign.trace("Further"))
    nodes = [
        raises,
        needs_it.with_id("NeedsIt"),
        own.Read(data=needs_it.outputs["out"], trace=foreign.trace("AndIt")).with_id(
            "AndIt"
        ),
        own.Reporting(spec),
        own.InContainer().with_platform_config(docker),
        make,
        further.with_id("Further"),
    ]

    run = foreign.run(nodes)

    assert run.states == {
        **dict.fromkeys(("Raise", "Reporting", "InContainer"), "failed"),
        **dict.fromkeys(("Make", "Further"), "ran"),
        **dict.fromkeys(("NeedsIt", "AndIt"), "not_reached"),
    }
    assert run.reasons["NeedsIt"] == "stopped by Raise"
    message = run.message("Raise")
    assert message.startswith("Raise failed: ValueError: the user says no\n")
    assert "foreign_components.py:" in message and " in Raise\n" in message
    assert "the executor has its reasons" in run.message("Reporting")
    assert "InContainer failed: DockerException: " in run.message("InContainer")
    assert "runners/local" not in run.message("InContainer")
    assert "Traceback" in run.log("Raise")
    assert isinstance(run.error, NodeError)
    # Of the first in the graph, with the traceback of its process.
    cause = run.error.__cause__
    assert cause is not None and type(cause).__name__ == "DockerException"
    assert "Traceback" in str(cause.__cause__)
    assert str(run.error).count("where:") <= 1
    assert str(run.run_dir / "logs") in str(run.error)


def test_a_node_without_its_input_has_failed(foreign, own) -> None:
    """TFX's own runner returns normally after this."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    def nodes():
        never_made = Channel(type=Examples)
        read = own.Read(data=never_made, trace=foreign.trace("Read"))
        latest = Resolver(strategy_class=LatestArtifactStrategy, data=never_made)
        found = latest.with_id("Latest").outputs["data"]
        optional = own.ReadIfThere(data=found, trace=foreign.trace("Optional"))
        return [read, latest, optional]

    run = foreign.run(nodes())

    assert run.states == {"Read": "failed", "Latest": "ran", "ReadIfThere": "ran"}
    assert run.reasons["Read"] == "Read failed: no artifact for its input 'data'"
    assert run.reasons["Latest"] == "found nothing"
    assert isinstance(run.error, NodeError)
    assert foreign.notes("Read") == []
    # What TFX writes of a resolver that has found nothing.
    assert foreign.execution_states() == {"FAILED": 2, "COMPLETE": 1}

    # Somebody makes it, and the run goes on as if nothing had been.
    foreign.run([own.Make(trace=foreign.trace("Make"))], run_id="two")
    continued = foreign.run(nodes())
    assert set(continued.states.values()) == {"ran"}
    (artifact,) = continued.nodes["Read"].inputs["data"]
    assert "/Make/out/" in artifact["uri"]
    assert [note["read"] for note in foreign.notes("Read")] == ["hello"]
    ids = [continued.nodes["Read"].execution_id]
    (execution,) = foreign.store().get_executions_by_id(ids)
    assert "__execution_result__" not in execution.custom_properties


def test_unsupported_pipelines_are_refused(foreign, own, process_pool) -> None:
    from ml_metadata.proto import metadata_store_pb2
    from tfx.orchestration.pipeline import Pipeline

    from runners.local.local_runner import LocalRunner

    def make():
        return own.Make(trace=foreign.trace("Make"))

    empty = foreign.run([])
    assert isinstance(empty.error, UsageError)
    assert "the pipeline has no nodes" in str(empty.error)

    made = make()
    inner = Pipeline("inner", components=[made], outputs={"out": made.outputs["out"]})
    read = own.Read(data=inner.outputs["out"], trace=foreign.trace("Read"))
    nested = foreign.run([inner, read], run_id="nested")
    assert isinstance(nested.error, UsageError)
    assert "does not run nested pipelines" in str(nested.error)

    in_memory = metadata_store_pb2.ConnectionConfig(
        fake_database=metadata_store_pb2.FakeDatabaseConfig()
    )
    for connection, message in (
        (in_memory, "the pipeline's metadata is not in an SQLite file"),
        (None, "the pipeline has no metadata connection config"),
    ):
        pipeline = Pipeline(
            "foreign",
            str(foreign.root),
            components=[make()],
            metadata_connection_config=connection,
        )
        with pytest.raises(UsageError, match=message):
            LocalRunner().run(pipeline)

    pipeline = Pipeline(
        "foreign",
        str(foreign.root),
        components=[make()],
        metadata_connection_config=in_memory,
    )
    runner = LocalRunner(process_pool=process_pool, runs_dir=foreign.root / "runs")
    with pytest.raises(UsageError, match="the pipeline's metadata is in memory"):
        runner.run(pipeline)
    assert foreign.notes("Make") == []


def test_an_interrupted_run_can_be_resumed(foreign, own) -> None:
    def nodes():
        sleep = own.SleepAtFirst(trace=foreign.trace("Sleep"))
        after = own.TakeParameters(trace=foreign.trace("After"))
        after.add_upstream_node(sleep)
        return [sleep, after]

    def press_ctrl_c() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not foreign.notes("Sleep") and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press_ctrl_c)
    finger.start()
    with pytest.raises(KeyboardInterrupt, match="interrupted by SIGINT"):
        foreign.run(nodes())
    finger.join()
    assert foreign.execution_states() == {"FAILED": 1}
    log = (foreign.root / "runs" / "one" / "logs" / "SleepAtFirst.log").read_text()
    assert log.endswith("the node was asked to stop\n")
    assert "Traceback" not in log

    continued = foreign.run(nodes())
    assert continued.states == {"SleepAtFirst": "ran", "TakeParameters": "ran"}
    assert foreign.execution_states() == {"COMPLETE": 2}


def test_a_run_is_resumed_and_another_uses_the_cache(foreign, own) -> None:
    def nodes():
        make = own.Make(trace=foreign.trace("Make"))
        dies = own.DieAtFirst(trace=foreign.trace("Dies"))
        dies.add_upstream_node(make)
        read = own.Copy(data=make.outputs["out"], trace=foreign.trace("Copy"))
        read.add_upstream_node(dies)
        return [make, dies, read]

    killed = foreign.run(nodes(), cache=True)
    assert killed.states == {
        "Make": "ran",
        "DieAtFirst": "failed",
        "Copy": "not_reached",
    }
    assert foreign.execution_states() == {"COMPLETE": 1, "FAILED": 1}

    continued = foreign.run(nodes(), cache=True)
    assert continued.error is None
    assert set(continued.states.values()) == {"ran"}
    started = [(e["node"], e["attempt"]) for e in continued.of("node_started")]
    assert started == [("DieAtFirst", 2), ("Copy", 1)]
    assert len(foreign.notes("Make")) == 1
    # What the killed attempt had written is gone, not read together with the rest.
    assert [note["found"] for note in foreign.notes("Dies")] == [[], []]
    assert [path.name for path in continued.uri("DieAtFirst").iterdir()] == ["part-2"]
    # Its checkpoints were kept until it had succeeded.
    assert [note["checkpoints"] for note in foreign.notes("Dies")] == [[], ["ckpt-1"]]
    assert not list((foreign.root / "runs" / "one" / "checkpoints").iterdir())
    assert foreign.execution_states() == {"COMPLETE": 3}

    again = foreign.run(nodes(), cache=True)
    assert again.states == continued.states
    assert again.of("node_started") == []

    other = foreign.run(nodes(), run_id="two", cache=True)
    assert set(other.states.values()) == {"cached"}
    assert other.uri("Copy") == continued.uri("Copy")

    uncached = foreign.run(nodes(), run_id="three")
    assert set(uncached.states.values()) == {"ran"}
    assert len(foreign.notes("Make")) == 2


def test_only_the_same_pipeline_can_be_resumed(foreign, own) -> None:
    def run(*nodes):
        return foreign.run(nodes, cache=True)

    def make(text: str):
        return own.Make(trace=foreign.trace("Make"), text=text)

    # What was refused has not begun, and does not stand in the way.
    assert isinstance(run().error, UsageError)
    assert run(make("hello")).states == {"Make": "ran"}
    further = own.TakeParameters(trace=foreign.trace("Further"))
    changed = run(make("other"), further)
    assert isinstance(changed.error, UsageError)
    assert "run one cannot be resumed: the pipeline has changed since" in str(
        changed.error
    )
    assert "changed: Make, TakeParameters" in str(changed.error)
    assert changed.events == []
    assert [note["made"] for note in foreign.notes("Make")] == ["hello"]
    assert run(make("hello")).states == {"Make": "ran"}


def test_a_run_of_an_earlier_version_is_not_resumed(foreign, own) -> None:
    from runners.local.job_environment import JobEnvironment

    make = own.Make(trace=foreign.trace("Make"))
    run_dir = foreign.run([make]).run_dir
    graph = json.loads((run_dir / "graph.json").read_text())
    for node in graph["nodes"]:
        del node["optional"], node["when_skipped"]
        node["needs"] = list(node["needs"].values())
    (run_dir / "graph.json").write_text(json.dumps(graph))
    job_environment = json.loads((run_dir / "job_environment.json").read_text())
    del job_environment["arguments"]
    (run_dir / "job_environment.json").write_text(json.dumps(job_environment))

    again = foreign.run([own.Make(trace=foreign.trace("Make"))])
    assert isinstance(again.error, UsageError)
    assert "run one was started by another version of Sluice" in str(again.error)
    assert JobEnvironment.load(run_dir).arguments == ()


def test_the_journal_has_the_events_of_the_callback(foreign, own) -> None:
    from sluice.record.journal import Journal

    make = own.Make(trace=foreign.trace("Make"))
    run = foreign.run([make, own.Raise(message="no")], workers=1)

    journal = Journal(run.run_dir).events()
    assert [event.to_dict() for event in journal] == run.events
    assert [event["event"] for event in run.events] == [
        "run_started",
        "graph",
        "node_started",
        "node_finished",
        "node_started",
        "node_finished",
        "finished",
        "run_ended",
        "report_written",
    ]
    assert all(event["at"].startswith("20") for event in run.events)
    nodes = {node["id"]: node for node in run.events[1]["nodes"]}
    assert nodes["Make"] == {
        "id": "Make",
        "kind": "Make",
        "upstream": (),
        "gate": False,
        "judges_data": False,
        "action": "run",
    }


def test_a_foreign_run_has_a_record_and_a_page(foreign, own) -> None:
    make = own.Make(trace=foreign.trace("Make"))
    run = foreign.run([make, own.Raise(message="<no>")])

    record = RunRecord.load(run.run_dir)
    assert (record.status, record.exit_code) == ("failed", ExitCode.NODE)
    assert record.error is not None and record.error.node == "Raise"
    assert record.report_uri == str(run.run_dir / "report.html")
    page = (run.run_dir / "report.html").read_text("utf-8")
    assert "Failed in Raise: nothing was pushed" in page
    assert "ValueError: &lt;no&gt;" in page


@pytest.mark.browser
def test_the_pages_of_foreign_runs_that_failed_or_were_blocked(
    foreign, own, report_pages: Any
) -> None:
    make = own.Make(trace=foreign.trace("Make"))
    failed = foreign.run([make, own.Raise(message="<no>")], run_id="failed")
    given = own.Make(trace=foreign.trace("Given"))
    blocked = foreign.run(
        [given, own.ForeignGate(trace=foreign.trace("Gate"))], run_id="stopped"
    )
    for run, headline, reason in (
        (failed, "Failed in Raise: nothing was pushed", "ValueError: <no>"),
        (
            blocked,
            "Not pushed: the run was stopped by a gate in ForeignGate",
            "not good enough",
        ),
    ):
        report = run.run_dir / "report.html"
        report_pages.check(report, ("Verdict", "Run", "Provenance"))
        with report_pages.open(report) as page:
            shown = page.locator("#verdict").inner_text()
            assert headline in shown and reason in shown


def test_a_run_is_locked_by_its_process(foreign, own, tmp_path: Path) -> None:
    from sluice.errors import LockedError
    from sluice.storage import atomic

    nodes = [own.Make(trace=foreign.trace("Make"))]
    first = foreign.run(nodes, run_id="one")
    assert first.error is None
    with atomic.lock(first.run_dir / ".lock", wait=False):
        second = foreign.run([own.Make(trace=foreign.trace("Make"))], run_id="one")
    assert isinstance(second.error, LockedError)
    assert "this run is in progress in another process" in str(second.error)
