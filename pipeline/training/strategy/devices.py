"""Settings of this machine's devices, made before TensorFlow's runtime starts."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipeline.config.train import Devices
from sluice.errors import NodeError


def configure_devices(settings: Devices, replicas: int | None = None) -> list[Any]:
    """Configures this machine's devices, and returns the physical ones to train on.

    These are the visible GPUs, else the CPU. With ``replicas`` the first of them is
    divided into so many logical devices, and the others are left out.

    Raises:
      NodeError: TensorFlow refuses a setting, or has used the devices already.
    """
    tf.debugging.set_log_device_placement(settings.log_placement)
    if settings.log_placement:
        # TensorFlow prints placements to C's stdout, and a node's process ends without
        # flushing it.
        libc = ctypes.CDLL(None)
        libc.setlinebuf(ctypes.c_void_p.in_dll(libc, "stdout"))
    gpus = choose_gpus(settings.visible)
    if replicas is not None:
        gpus = gpus[:1]
    parts, limit_mb = replicas or settings.logical or 1, settings.memory_limit_mb
    try:
        if settings.visible is not None or replicas is not None:
            tf.config.set_visible_devices(gpus, "GPU")
        for gpu in gpus if settings.memory_growth else []:
            tf.config.experimental.set_memory_growth(gpu, True)
        devices = gpus or tf.config.list_physical_devices("CPU")
        for device in devices:
            limit = limit_mb if gpus else None
            if parts > 1 or limit is not None:
                part = tf.config.LogicalDeviceConfiguration(limit)
                tf.config.set_logical_device_configuration(device, [part] * parts)
    except (RuntimeError, ValueError) as error:
        raise NodeError(str(error), where="train.devices") from error
    return devices


def choose_gpus(visible: Sequence[int] | None) -> list[Any]:
    """Returns this machine's GPUs of some numbers; None: all.

    Raises:
      NodeError: there is no GPU of a number.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for number in visible or ():
        if number >= len(gpus):
            raise NodeError(
                f"there is no GPU {number}: this machine has {len(gpus)}",
                where="train.devices.visible",
                hint="sluice doctor lists the devices",
            )
    return gpus if visible is None else [gpus[number] for number in visible]
