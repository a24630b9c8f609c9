"""Trainings on two nodes of a real Slurm, which are killed or do not come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from runners.operations.print_cluster import slurm_script
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace
from tests.kit.slurm import PACKAGES, Slurm, missing_programs
from tests.kit.wait import DEADLINE_S, wait_for

pytestmark = [pytest.mark.fault, pytest.mark.acceptance]

SETTINGS = (
    "train.epochs=4",
    "train.callbacks=[watch:Watch]",
    "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.5}]",
)
# Notes the weights after each epoch, and holds a task before one.
WATCH = """
import hashlib, json, os, time
from pathlib import Path
import tf_keras

class Watch(tf_keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        Path(f"begun-{self.task}").write_text(str(epoch))
        if Path(f"hold-{self.task}-{epoch}").exists():
            time.sleep(1000)

    def on_epoch_end(self, epoch, logs=None):
        data = b"".join(weight.numpy().tobytes() for weight in self.model.weights)
        with open(f"weights-{self.task}", "a") as file:
            file.write(f"{epoch} {hashlib.sha256(data).hexdigest()}\\n")

    @property
    def task(self):
        return json.loads(os.environ["TF_CONFIG"])["task"]["index"]
"""


class Cluster:
    """A project on a Slurm of two nodes."""

    def __init__(self, slurm: Slurm, project: Path) -> None:
        self.slurm, self.project = slurm, project
        self._workspace = Workspace(project / "workspace" / "digits")
        config = load_config(str(project / "configs/digits.yaml"), overrides=SETTINGS)
        (project / "run.sh").write_text(slurm_script(config, 2))
        for name, pattern, command in (
            ("resume.sh", "sluice run [^;]*;", "sluice resume digits;"),
            ("alone.sh", r"exec \S+ worker digits", "true"),
        ):
            changed = re.sub(pattern, command, self.read("run.sh"))
            (project / name).write_text(changed)

    def read(self, name: str) -> str:
        return (self.project / name).read_text()

    def submit(
        self, script: str = "run.sh", **variables: str
    ) -> subprocess.Popen[bytes]:
        """Submits a script; what is returned ends with the job and its status."""
        command = ("sbatch", "--wait", "--output=job.out", script)
        environment = {**self.slurm.environment, **variables}
        return subprocess.Popen(command, cwd=self.project, env=environment)

    def lose(self, task: int, epoch: int) -> None:
        """Submits a job, and kills a task when both have come to an epoch."""
        hold = self.project / f"hold-{task}-{epoch}"
        hold.touch()
        for begun in self.project.glob("begun-*"):
            begun.unlink()
        job = self.submit()

        def are_there() -> bool:
            files = [self.project / f"begun-{index}" for index in (0, 1)]
            return all(
                file.exists() and file.read_text() == str(epoch) for file in files
            )

        wait_for(lambda: are_there() or job.poll() is not None, "the epoch")
        assert job.poll() is None, self.read("job.out")
        self.slurm.kill_task(task)
        assert job.wait(DEADLINE_S) != 0
        hold.unlink()

    @property
    def record(self) -> RunRecord:
        """The record of the newest run."""
        run_id = self._workspace.run_ids()[-1]
        return RunRecord.load_ended(self._workspace.run_dir(run_id))


@pytest.fixture(scope="module")
def cluster(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if missing := missing_programs():
        text = f"{', '.join(missing)} not installed; try: {PACKAGES}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(text)
    root = tmp_path_factory.mktemp("cluster")
    for folder in ("configs", "schemas", "data"):
        shutil.copytree(project / folder, root / folder)
    (root / "watch.py").write_text(WATCH)
    slurm = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        slurm.start()
        yield Cluster(slurm, root)
    finally:
        slurm.stop()


def test_a_node_that_never_comes_is_named(cluster):
    job = cluster.submit("alone.sh", SLUICE_CLUSTER_WAIT_S="3")
    assert job.wait(DEADLINE_S) == 7, cluster.read("job.out")
    printed = cluster.read("job.out")
    assert "waiting for worker 1 at 127.0.0.1:" in printed
    assert re.search(r"worker 1 at 127\.0\.0\.1:\d+ did not come within 3 s", printed)


def test_a_killed_node_ends_the_training_which_goes_on(cluster):
    for epoch in (0, 2):
        cluster.lose(task=1, epoch=epoch)
        error = cluster.record.error
        assert (error.node, error.exit_code) == ("Trainer", 7)
        assert re.match(r"worker 1 at 127\.0\.0\.1:\d+ is lost", error.message)
    cluster.lose(task=0, epoch=3)
    assert cluster.record.status == "interrupted"
    lost = r"1: error: worker 0 at 127\.0\.0\.1:\d+ is lost"
    assert re.search(lost, cluster.read("job.out"))
    job = cluster.submit("resume.sh")
    assert job.wait(DEADLINE_S) == 0, cluster.read("job.out")
    assert "training resumes with epoch 4 of 4" in cluster.read("job.out")
    assert cluster.record.has_pushed
    weights = cluster.read("weights-0")
    assert cluster.read("weights-1") == weights
    assert [line.split()[0] for line in weights.splitlines()] == ["0", "1", "2", "3"]
