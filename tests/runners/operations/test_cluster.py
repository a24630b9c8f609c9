"""What starts a training on several machines, and what a worker refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pipeline.config.load import load_config
from pipeline.training.strategy.cluster import find_cluster
from runners.operations.print_cluster import jobset_manifest, slurm_script
from runners.operations.worker import work
from sluice.errors import NodeError, UsageError
from sluice.workspace import workspaces_in
from tests.runners.operations.test_run import run_digits

pytestmark = pytest.mark.unit

TWO = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}


def test_the_pods_of_a_job_set_are_a_cluster(written):
    config = load_config("digits")
    manifest = yaml.safe_load(jobset_manifest(config, 3, "example/sluice:1", "shared"))
    (job,) = manifest["spec"]["replicatedJobs"]
    pods = job["template"]["spec"]
    assert pods["completions"] == pods["parallelism"] == 3
    (container,) = pods["template"]["spec"]["containers"]
    environ = {item["name"]: item["value"] for item in container["env"]}
    tasks = []
    for index in range(3):
        cluster = find_cluster({**environ, "JOB_COMPLETION_INDEX": str(index)})
        assert cluster is not None
        tasks.append(cluster.describe(cluster.job, cluster.index))
    # <job set>-<job>-<number of the job>-<index of the pod>.<job set>
    name = f"{manifest['metadata']['name']}-{job['name']}-0"
    assert tasks == [
        f"worker {index} at {name}-{index}.digits:2222" for index in range(3)
    ]
    assert {container["ports"][0]["containerPort"]} == {2222}
    assert "run digits; else exec" in container["command"][2]
    assert container["volumeMounts"][0]["mountPath"] == str(config.root)
    with pytest.raises(UsageError, match="needs the image"):
        jobset_manifest(config, 2, None, "shared")


def test_the_script_has_the_options_of_the_run(written):
    config = load_config("digits", overrides=["train.epochs=2"])
    with workspaces_in("shared"):
        text = slurm_script(config, 4)
    assert "#SBATCH --nodes=4\n" in text
    place = Path.cwd() / "shared"
    assert f"run digits --set train.epochs=2 --workspace {place};" in text
    assert f"sluice worker digits --workspace {place};" in text


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
