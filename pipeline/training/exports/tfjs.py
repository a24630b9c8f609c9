"""TF.js layers models, converted in an environment of their own.

TF.js' converter needs versions that do not fit beside TFX. Its environment is made when
it is needed first, from a lock with hashes, in ``~/.cache/sluice``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.training.exports import tfjs_converter
from pipeline.training.exports.tflite import Rows
from pipeline.training.keras_of import is_keras_3
from sluice import progress
from sluice.errors import NodeError
from sluice.project import own_root
from sluice.storage import atomic, digest

LOCK = Path("requirements", "tfjs.txt")


def write_tfjs(model: Any, folder: Path, examples: Rows) -> np.ndarray:
    """Converts a model; returns the predictions of the converted one.

    Args:
      model: a functional model with a list of inputs.
      folder: of ``model.json`` and the weights.
      examples: the inputs, in the order of the model's.

    Raises:
      NodeError: TF.js cannot load it, or the environment cannot be made.
    """
    if is_keras_3(model):
        raise NodeError(
            "TF.js does not read models of Keras 3",
            where="export",
            hint="leave tfjs out of export, or make the model with tf.keras",
        )
    python = make_environment(own_root() / LOCK, cache_dir())
    with tempfile.TemporaryDirectory() as temporary:
        source, inputs, predictions = (
            os.path.join(temporary, name) for name in ("m.h5", "i.npz", "p.npy")
        )
        model.save(source, save_format="h5", include_optimizer=False)
        np.savez(inputs, **examples)
        script = str(tfjs_converter.__file__)
        _call(
            "TF.js' converter cannot convert the model",
            [python, script, source, folder, inputs, predictions],
        )
        return np.load(predictions)


def cache_dir() -> Path:
    """Returns the folder of environments."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sluice")


def make_environment(lock: Path, cache: Path) -> Path:
    """Returns the Python of the environment of a lock, which appears whole.

    Raises:
      NodeError: it cannot be made, such as without a network.
    """
    if not lock.exists():
        raise NodeError("TF.js' converter needs the lock of a checkout", where=lock)
    key = f"{digest.of_file(lock)}-{sys.version_info.minor}"
    environment = cache / f"{lock.stem}-{key[-19:]}"
    cache.mkdir(parents=True, exist_ok=True)
    with atomic.lock(cache / ".lock"):
        if not environment.exists():
            for left in cache.glob("partial-*"):
                shutil.rmtree(left, ignore_errors=True)
            progress.report(line="installing TF.js' converter, once: 3 GB")
            partial = Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
            failure = "the environment of TF.js' converter cannot be made"
            # Not this project's environment, which may be deleted.
            _call(failure, [Path(sys.executable).resolve(), "-m", "venv", partial])
            pip = (partial / "bin" / "python", "-m", "pip", "install", "--quiet")
            # The lock has all but what is not used: see tfjs-override.in.
            _call(failure, [*pip, "--no-deps", "--require-hashes", "-r", lock])
            # Its scripts have the old path in them, but only its Python is called.
            partial.rename(environment)
    return environment / "bin" / "python"


def _call(failure: str, command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        hint = "it needs a network once" if "pip" in command else None
        raise NodeError(f"{failure}: {last[:300]}", where="export", hint=hint)
