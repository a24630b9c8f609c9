"""Selects legacy Keras, and configures TensorFlow's logs, AutoGraph and Beam's cache.

``prepare_environment`` must run before the first TensorFlow import of a process. It
selects the same Keras as TFX's own images; otherwise the import order would decide,
because tensorflow_transform sets the variable on import and ``tf.keras`` is loaded
lazily. ``exclude_keras_from_autograph`` runs before the first model is built.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

_QUIET = "2"


def prepare_environment() -> None:
    """Selects legacy Keras and quiet native logs for this process and its children.

    Raises:
      RuntimeError: TensorFlow has already been imported with another Keras.
    """
    if "tensorflow" in sys.modules and os.environ.get("TF_USE_LEGACY_KERAS") != "1":
        raise RuntimeError(
            "TensorFlow was imported before sluice.compat.prepare_environment(); "
            "set TF_USE_LEGACY_KERAS=1 in the environment or call it earlier"
        )
    os.environ.update(child_environment())


def child_environment() -> dict[str, str]:
    """Returns the variables that ``prepare_environment`` sets, for a child process."""
    quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", _QUIET)
    return {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": quiet}


def exclude_keras_from_autograph() -> None:
    """Excludes two libraries from AutoGraph's conversion, as ``keras`` already is.

    AutoGraph's list of excluded packages has ``keras`` but not ``tf_keras``
    (tensorflow/python/autograph/core/config.py, 2.16), so the first ``fit`` of each
    process converts all of Keras: 15 s instead of 0.8 s for a small CNN. TensorFlow
    Transform's layer has no control flow on tensors either; converting it costs 3 of
    the 6 s of an export. A user's own ``call`` lives in another module and is still
    converted.
    """
    from tensorflow.python.autograph.core import config

    for module in ("tf_keras", "tensorflow_transform"):
        rule = config.DoNotConvert(module)
        if not any(str(known) == str(rule) for known in config.CONVERSION_RULES):
            config.CONVERSION_RULES = (rule, *config.CONVERSION_RULES)


def skip_sizes_in_beams_cache() -> None:
    """Counts each side input in Beam's cache as 1 kB instead of measuring it.

    ``objsize`` first walks the globals of all modules, 20 ms for each side input with
    TensorFlow imported: an eighth of an evaluation. In Beam's in-process runner the
    values are in memory anyway. Of Beam 2.62 and 2.76
    (apache_beam/runners/worker/statecache.py); where there is no such function, this
    does nothing.
    """
    from apache_beam.runners.worker import statecache

    if hasattr(statecache, "get_deep_size"):
        statecache.get_deep_size = lambda *values: 1024


def tensorflow_has_started() -> bool:
    """Whether TensorFlow has devices and threads, which do not survive a fork."""
    return _tensorflow_context() is not None


def holds_accelerator() -> bool:
    """Whether TensorFlow keeps a GPU or a TPU until this process ends."""
    context = _tensorflow_context()
    if not getattr(context, "_initialized", False):
        return False  # Listing the devices would reserve them.
    return any(x.device_type != "CPU" for x in context.list_logical_devices())


def _tensorflow_context() -> Any:
    eager = sys.modules.get("tensorflow.python.eager.context")
    return getattr(eager, "_context", None)


@contextmanager
def hidden_native_logs() -> Iterator[None]:
    """Prepares TensorFlow, and hides what native libraries print to stderr.

    What Python prints is kept.

    XLA's messages (a service is initialized, a cluster is compiled, seeds are ignored)
    do not respect TF_CPP_MIN_LOG_LEVEL (seen with TensorFlow 2.16).
    """
    prepare_environment()
    sys.stderr.flush()
    kept = os.dup(2)
    # Never closed: handlers of logs that are made meanwhile go on writing to it.
    err = os.fdopen(kept, "w", buffering=1, closefd=False)
    try:
        with open(os.devnull, "wb") as nowhere, redirect_stderr(err):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
