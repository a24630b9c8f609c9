"""TensorFlow: AutoGraph, devices and sessions."""

from __future__ import annotations

import sys
from typing import Any


def exclude_keras_from_autograph() -> None:
    """Excludes two libraries from AutoGraph's conversion, as ``keras`` already is.

    A user's own ``call`` lives in another module and is still converted. Must be called
    before the first model is built.

    Why: TensorFlow 2.16 does not list ``tf_keras`` as it lists ``keras``. TensorFlow
    Transform's layer has no control flow on tensors either.
    Upstream: ``CONVERSION_RULES`` in tensorflow/python/autograph/core/config.py.
    Checked with: TensorFlow 2.16 and 2.21, which lists ``tf_keras``.
    Without it: the first ``fit`` of each process converts all of Keras, 15 s instead of
    0.8 s for a small CNN; Transform's layer costs 3 of the 6 s of an export.
    """
    from tensorflow.python.autograph.core import config

    for module in ("tf_keras", "tensorflow_transform"):
        rule = config.DoNotConvert(module)
        if not any(str(known) == str(rule) for known in config.CONVERSION_RULES):
            config.CONVERSION_RULES = (rule, *config.CONVERSION_RULES)


def has_started() -> bool:
    """Whether TensorFlow has devices and threads, which do not survive a fork.

    Why: to ask TensorFlow for its devices would start it.
    Upstream: ``_context`` in tensorflow/python/eager/context.py.
    Checked with: TensorFlow 2.16 and 2.21.
    Without it: a fork of a process that has used TensorFlow hangs.
    """
    return _context() is not None


def holds_accelerator() -> bool:
    """Whether TensorFlow keeps a GPU or a TPU until this process ends.

    Why: listing the devices of a context that is not initialized would reserve them.
    Upstream: ``_context`` and ``_initialized`` in tensorflow/python/eager/context.py.
    Checked with: TensorFlow 2.16 and 2.21.
    Without it: the node after a training may start while its memory is still taken.
    """
    context = _context()
    if not getattr(context, "_initialized", False):
        return False
    return any(x.device_type != "CPU" for x in context.list_logical_devices())


def make_callable(session: Any, feed: Any, target: Any) -> Any:
    """Returns a function that runs an operation of a session for a fed tensor.

    Why: ``Session.make_callable`` is slow with feeds. Keras calls sessions this way.
    Upstream: ``_make_callable_from_options`` in tensorflow/python/client/session.py.
    Checked with: TensorFlow 2.16 and 2.21.
    Without it: 66 instead of 9 microseconds to decode a small PNG.
    """
    from tensorflow.core.protobuf.config_pb2 import CallableOptions

    options = CallableOptions(feed=[feed.name], target=[target.name])
    return session._make_callable_from_options(options)


def _context() -> Any:
    eager = sys.modules.get("tensorflow.python.eager.context")
    return getattr(eager, "_context", None)
