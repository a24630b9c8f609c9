"""What starts a training on several machines, and what a worker refuses."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from pipeline.training.strategy.cluster import find_cluster
from runners.operations.worker import work
from sluice.errors import NodeError, UsageError
from sluice.project import own_root
from tests.runners.operations.test_run import run_digits

pytestmark = pytest.mark.unit

TWO = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}


def test_the_pods_of_a_job_set_are_a_cluster():
    page = (own_root() / "docs" / "training.md").read_text()
    (text,) = re.findall(r"^```yaml\n(apiVersion.*?)^```$", page, re.M | re.S)
    manifest = yaml.safe_load(text)
    (job,) = manifest["spec"]["replicatedJobs"]
    pods = job["template"]["spec"]
    assert pods["completions"] == pods["parallelism"] == 2
    (container,) = pods["template"]["spec"]["containers"]
    environ = {item["name"]: item["value"] for item in container["env"]}
    tasks = []
    for index in range(2):
        cluster = find_cluster({**environ, "JOB_COMPLETION_INDEX": str(index)})
        assert cluster is not None
        tasks.append(cluster.describe(cluster.job, cluster.index))
    # <job set>-<job>-<number of the job>-<index of the pod>.<job set>
    name = f"{manifest['metadata']['name']}-{job['name']}-0"
    assert tasks == [f"worker {i} at {name}-{i}.digits:2222" for i in range(2)]


@pytest.mark.parametrize(
    ("index", "what"), [(None, "nothing describes a cluster"), (0, "the first task")]
)
def test_only_a_worker_of_a_cluster_waits(written, monkeypatch, index, what):
    if index is not None:
        task = {"type": "worker", "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": task}))
    with pytest.raises(UsageError, match=what):
        work("digits")


def test_a_worker_names_the_folder_where_no_run_begins(written, monkeypatch):
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": task}))
    monkeypatch.setenv("SLUICE_CLUSTER_WAIT_S", "0")
    monkeypatch.setattr("runners.local.processes.start_server", lambda **_: None)
    with pytest.raises(UsageError, match="sluice worker"):
        run_digits()
    with pytest.raises(NodeError, match="no run of digits began") as raised:
        work("digits")
    assert raised.value.where == str(written.workspace.root)


def test_a_search_runs_on_one_machine(written, monkeypatch):
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": task}))
    with pytest.raises(UsageError, match="a search runs on one machine"):
        run_digits("tune={trials: 2, space: {train.seed: [1, 2]}}")
