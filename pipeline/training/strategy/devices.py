"""Settings of this machine's devices, made before TensorFlow's runtime starts."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from sluice.errors import NodeError


@dataclass(frozen=True)
class DeviceSettings:
    """Settings of the devices, see ``train.devices`` of the config.

    The memory limit is of each logical GPU where one is divided.
    """

    visible: Sequence[int] | None = None
    memory_growth: bool = False
    memory_limit_mb: int | None = None
    logical: int | None = None
    log_placement: bool = False


def configure_devices(
    settings: DeviceSettings, replicas: int | None = None
) -> list[Any]:
    """Configures this machine's devices, and returns the physical ones to train on.

    These are the visible GPUs, else the CPU. With ``replicas`` the first of them is
    divided into so many logical devices, and the others are left out.

    Raises:
      NodeError: a device does not exist, or TensorFlow has used the devices already.
    """
    tf.debugging.set_log_device_placement(settings.log_placement)
    if settings.log_placement:
        _write_lines_at_once()
    gpus = choose_gpus(settings.visible)
    if replicas is not None:
        gpus = gpus[:1]
    devices = gpus or tf.config.list_physical_devices("CPU")
    try:
        if settings.visible is not None or replicas is not None:
            tf.config.set_visible_devices(gpus, "GPU")
        if settings.memory_growth:
            for gpu in gpus:
                tf.config.experimental.set_memory_growth(gpu, True)
        for device in devices:
            _divide(device, replicas or settings.logical or 1, settings)
    except RuntimeError as error:
        raise NodeError(
            "the devices cannot be configured any more",
            where="train.devices",
            expected="a process in which TensorFlow has not used a device yet",
            actual=str(error),
        ) from error
    return devices


def choose_gpus(visible: Sequence[int] | None) -> list[Any]:
    """Returns this machine's GPUs of some numbers; None: all.

    Raises:
      NodeError: there is no GPU of a number.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if visible is None:
        return gpus
    missing = [index for index in visible if index >= len(gpus)]
    if missing:
        raise NodeError(
            f"there is no GPU {missing[0]}",
            where="train.devices.visible",
            expected=f"numbers below {len(gpus)}"
            if gpus
            else "null, since this machine has no GPU",
            hint="sluice doctor lists the devices",
        )
    return [gpus[index] for index in visible]


def _divide(device: Any, parts: int, settings: DeviceSettings) -> None:
    is_gpu = device.device_type == "GPU"
    limit_mb = settings.memory_limit_mb if is_gpu else None
    if parts == 1 and limit_mb is None:
        return
    if is_gpu and limit_mb is None:
        raise NodeError(
            "a GPU cannot be divided into logical devices without a memory limit",
            where="train.devices.memory_limit_mb",
            expected=f"the memory of each of the {parts} logical devices, in MB",
        )
    part = tf.config.LogicalDeviceConfiguration(limit_mb)
    tf.config.set_logical_device_configuration(device, [part] * parts)


def _write_lines_at_once() -> None:
    # TensorFlow prints placements to C's stdout, and a node's process ends without
    # flushing it.
    libc = ctypes.CDLL(None)
    with suppress(ValueError):  # macOS has another name for it
        libc.setlinebuf(ctypes.c_void_p.in_dll(libc, "stdout"))
