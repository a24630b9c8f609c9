"""Sets up TensorFlow and Keras: the only place that knows how.

``prepare_environment`` runs before the first TensorFlow import of a process: it
chooses the Keras that TFX's own images choose. Without it the import order decides,
because tensorflow_transform sets the variable on import and ``tf.keras`` binds late.
``teach_autograph`` runs after it, before the first model is built.
"""

from __future__ import annotations

import os
import sys

_QUIET = "2"


def prepare_environment() -> None:
    """Chooses legacy Keras and quiet native logs for this process and its children.

    Raises:
      RuntimeError: TensorFlow was imported before with another Keras.
    """
    if "tensorflow" in sys.modules and os.environ.get("TF_USE_LEGACY_KERAS") != "1":
        raise RuntimeError(
            "TensorFlow was imported before sluice.compat.prepare_environment(); "
            "set TF_USE_LEGACY_KERAS=1 in the environment or call it earlier"
        )
    os.environ.update(child_environment())


def child_environment() -> dict[str, str]:
    """Returns what ``prepare_environment`` sets, for a process to be started."""
    quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", _QUIET)
    return {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": quiet}


def teach_autograph() -> None:
    """Tells AutoGraph to leave the code of two libraries alone, as it does ``keras``.

    Its list of packages to skip has ``keras`` but not ``tf_keras``
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
