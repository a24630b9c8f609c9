"""Checks the TFRecord framing of every local input file, then imports as TFX does."""

from __future__ import annotations

from typing import Any

from tfx.components.example_gen.import_example_gen import executor

from components.example_gen.input_files import input_files
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
