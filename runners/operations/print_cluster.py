"""Operation: a script for Slurm or a manifest of JobSet, as text.

Both start the same two commands: ``sluice run`` in the first task, ``sluice worker`` in
the others.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from pipeline.config.config import Config
from runners.operations.find_run import config_words
from runners.operations.print_schedule import filled_in
from sluice.errors import UsageError
from sluice.workspace import workspace_option

# As in TensorFlow's own examples of TF_CONFIG.
_PORT = 2222


def slurm_script(config: Config, nodes: int) -> str:
    """Returns a script for ``sbatch`` that trains on so many nodes."""
    program = [str(Path(sys.executable).with_name("sluice"))]  # Of this environment.
    return filled_in(
        "slurm_script.txt",
        name=config.name,
        nodes=str(nodes),
        root=str(config.root),
        place=shlex.quote(str(config.root)),
        command=shlex.quote(_command(config, program, "SLURM_PROCID")),
    )


def jobset_manifest(
    config: Config, nodes: int, image: str | None, claim: str | None
) -> str:
    """Returns a manifest that trains in so many pods.

    Args:
      config: of the pipeline, whose project is in the volume, at the same path.
      nodes: number of pods.
      image: of Sluice.
      claim: name of the PersistentVolumeClaim of the volume.

    Raises:
      UsageError: image or claim are missing.
    """
    if not (image and claim):
        text = "a manifest needs the image of Sluice and the volume of the project"
        raise UsageError(text, hint="--image IMAGE --claim NAME; see sluice image")
    name = config.name
    # JobSet's names: <job set>-<job>-<number of the job>-<index>.<job set>
    hosts = ",".join(f"{name}-train-0-{i}.{name}:{_PORT}" for i in range(nodes))
    program = ["python", "-m", "runners.cli.main"]  # The image has no script.
    command = _command(config, program, "JOB_COMPLETION_INDEX")
    return filled_in(
        "jobset.txt",
        name=name,
        nodes=str(nodes),
        image=json.dumps(image),
        root=json.dumps(str(config.root)),
        command=json.dumps(["sh", "-c", command]),
        hosts=json.dumps(hosts),
        port=str(_PORT),
        claim=json.dumps(claim),
    )


def _command(config: Config, program: list[str], index: str) -> str:
    """Returns the command of all tasks, whose number is in the variable ``index``."""
    place = workspace_option()
    words = config_words(config)
    run = shlex.join([*program, "run", *words, *place])
    worker = shlex.join([*program, "worker", words[0], *place])
    return f'if [ "${index}" = 0 ]; then exec {run}; else exec {worker}; fi'
