"""Operation: checks a config with schema and code; runs nothing.

What needs no TensorFlow is checked first; then Keras and TFMA make what the config
names, and TFX the components of custom nodes, or all of them for a ``cloud`` section.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from pipeline.checks.before_run import (
    check_before_run,
    check_strategy,
    check_with_tensorflow,
)
from pipeline.checks.check_config import require_secrets
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data
from pipeline.graph.locations import local_locations
from runners.operations.compile import compile_checked
from sluice.compat import hidden_native_logs
from sluice.errors import UsageError
from sluice.workspace import locate


def validate(config: Config, *, on_tpu: bool = False) -> list[str]:
    """Checks a config with its schema and code.

    A config with a ``cloud`` section is also compiled; no service is asked.

    Args:
      config: as it was loaded.
      on_tpu: whether XLA compiles the training for a TPU.

    Returns:
      Warnings of what may still make a run fail, such as missing data.

    Raises:
      UsageError: the config is invalid, or a TPU would refuse the training.
      NodeError: the user's code failed.
    """
    warnings: list[str] = []
    valid = check_before_run(
        config, in_service=config.cloud is not None, on_warning=warnings.append
    )
    require_secrets(valid, in_notify=True)
    if config.cloud is None:
        _make(valid)
    else:
        for scheduled in [False, True] if config.cloud.schedule else [False]:
            compile_checked(valid, scheduled=scheduled)
    # Accelerators are elsewhere, and so is the data of a service.
    checks: list[Callable[[Config], object]] = []
    checks += [] if config.cloud else [choose_data]
    checks += [] if config.cloud or on_tpu else [check_strategy]
    for check_one in checks:
        try:
            check_one(config)
        except UsageError as error:
            warnings.append(str(error))
    if on_tpu:
        # Keras warns that this machine has no GPU.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        with hidden_native_logs():
            from pipeline.checks.check_accelerator import check_on_tpu

            check_on_tpu(valid)
    return warnings


def _make(config: Config) -> None:
    """Makes what the config names, as a run will; writes nothing."""
    with hidden_native_logs():
        check_with_tensorflow(config)
        if config.nodes:
            from pipeline.graph.create_pipeline import create_pipeline

            places = local_locations(config, locate(config.root, config.name))
            create_pipeline(config, replace(places, copies_inputs=False))
