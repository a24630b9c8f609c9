"""Checks the TFRecord framing of every local input file, then imports as TFX does."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.components.example_gen.import_example_gen import executor
from tfx.dsl.io import fileio

from sluice import tfrecord


class Executor(executor.Executor):
    """Executor of ``ImportExampleGen``."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        for path in input_files(exec_properties):
            if "://" not in path:
                tfrecord.verify(path)
        super().Do(input_dict, output_dict, exec_properties)


def input_files(exec_properties: dict[str, Any]) -> list[str]:
    """Returns every file that the splits of ``input_config`` match, sorted."""
    splits = json.loads(exec_properties["input_config"])["splits"]
    return sorted(
        path
        for split in splits
        for path in fileio.glob(
            os.path.join(exec_properties["input_base"], split["pattern"])
        )
    )
