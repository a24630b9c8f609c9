"""Which files an ImportExampleGen reads."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.dsl.io import fileio


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
