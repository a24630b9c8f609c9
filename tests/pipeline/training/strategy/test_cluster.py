"""The cluster that variables describe, and how its machines meet."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.training.strategy.cluster import Cluster, find_cluster, join_as_chief
from pipeline.training.strategy.rendezvous import WAIT_VARIABLE, meet
from sluice.errors import NodeError, UsageError

pytestmark = pytest.mark.unit

SERVED = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def tf_config(cluster, job="worker", index=0):
    described = {"cluster": cluster, "task": {"type": job, "index": index}}
    return {"TF_CONFIG": json.dumps(described)}


def pod(index, hosts="a:1,b:1"):
    return {"SLUICE_HOSTS": hosts, "JOB_COMPLETION_INDEX": index}


@pytest.mark.parametrize(
    ("environ", "task", "is_chief"),
    [
        (tf_config({"worker": ["a:1", "b:1"]}), "worker 0 at a:1", True),
        (tf_config({"worker": ["a:1", "b:1"]}, index=1), "worker 1 at b:1", False),
        (tf_config(SERVED), "worker 0 at b:1", False),
        (tf_config(SERVED, "chief"), "chief 0 at a:1", True),
        (tf_config(SERVED, "ps"), "ps 0 at d:1", False),
        (pod("0"), "worker 0 at a:1", True),
        (pod("1"), "worker 1 at b:1", False),
    ],
)
def test_the_run_belongs_to_the_chief(environ, task, is_chief):
    cluster = find_cluster(environ)
    assert cluster is not None
    assert cluster.describe(cluster.job, cluster.index) == task
    if is_chief:
        join_as_chief(environ)
        assert find_cluster({"TF_CONFIG": environ["TF_CONFIG"]}) == cluster
    else:
        with pytest.raises(UsageError, match=f"(?s)this is {task}.*sluice worker"):
            join_as_chief(environ)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        tf_config({"worker": ["a:1"]}),
        {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"},
        {"SLURM_NTASKS": "2", "SLURM_PROCID": "0"},
        {"JOB_COMPLETION_INDEX": "3"},
    ],
    ids=["nothing", "one task", "a step of one task", "no step", "another job"],
)
def test_one_machine_is_no_cluster(environ):
    assert find_cluster(environ) is None
    join_as_chief(environ)
    assert "TF_CONFIG" not in environ or environ == tf_config({"worker": ["a:1"]})


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        (tf_config({"worker": ["a:1", "b:1"]}, index=2), "no task worker 2"),
        (tf_config({"worker": ["a:1", "b:1"]}, "chief"), "no task chief 0"),
        (tf_config({"worker": ["a:1", "b"]}), "an address without a port: b"),
        (tf_config({"worker": ["a:1"], "evaluator": ["b:1"]}), "the job evaluator"),
        (pod("2"), "SLUICE_HOSTS has no task worker 2"),
        (pod(""), "SLUICE_HOSTS is set, but not JOB_COMPLETION_INDEX"),
    ],
)
def test_what_is_damaged_is_an_error(environ, what):
    with pytest.raises(UsageError, match=what):
        find_cluster(environ)


@pytest.fixture
def tasks():
    """The three tasks of a cluster on this machine."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    return [Cluster({"worker": addresses}, "worker", index) for index in range(3)]


def end_of(cluster, seconds, says_done=False):
    """Meets the others, is there for so long, and returns how it has ended."""
    try:
        with meet(cluster) as peers:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                peers.check(0.05)
                if peers.have_ended and not cluster.is_chief:
                    return "done"
            if says_done:
                peers.say_done()
        return "left"
    except NodeError as error:
        return error.what


def ends_of(clusters, seconds):
    with ThreadPoolExecutor() as pool:
        return [*pool.map(end_of, clusters, seconds)]


def connect_to(cluster):
    """Connects to the chief, once it listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(cluster.address(*cluster.tasks[0]))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_all_end_with_the_chief(tasks):
    with ThreadPoolExecutor() as pool:
        chief = pool.submit(end_of, tasks[0], 0.3, True)
        with connect_to(tasks[0]) as scan:
            scan.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert ends_of(tasks[1:], [60, 60]) == ["done", "done"]
        assert chief.result() == "left"


def test_a_task_of_another_version_is_named(tasks):
    second = tasks[0].addresses["worker"][1]
    with ThreadPoolExecutor() as pool:
        chief = pool.submit(end_of, tasks[0], 60)
        with connect_to(tasks[0]) as other:
            other.sendall(b"sluice worker 1 with Sluice 0.0.1".ljust(128))
            said = chief.result(60)
    assert said.startswith(f"worker 1 at {second} has Sluice 0.0.1, this machine has ")


def test_a_lost_task_ends_the_others_and_is_named(tasks):
    chief, lost, other = ends_of(tasks, [60, 0.3, 60])
    assert lost == "left"
    assert chief.startswith(f"worker 1 at {tasks[0].addresses['worker'][1]} is lost")
    assert other.startswith(f"worker 0 at {tasks[0].addresses['worker'][0]} is lost")


def test_a_task_that_never_comes_is_named(tasks, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "1")
    first, _, third = tasks[0].addresses["worker"]
    chief, other = ends_of(tasks[:2], [60, 60])
    assert chief == f"worker 2 at {third} did not come within 1 s"
    assert other.startswith(f"worker 0 at {first} has given up before the training")
    (alone,) = ends_of(tasks[2:], [60])
    assert alone.startswith(f"worker 0 at {first} did not come within 1 s: Connection")
