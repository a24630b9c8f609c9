"""A project whose models a TPU refuses, and their check."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config

if TYPE_CHECKING:
    from pipeline.checks.check_accelerator import AcceleratorCheck

MODELS = Path(__file__).with_name("refused_models.py")
CONFIG = """
version: 1
name: refused
data: {dir: data, splits: {train: "train-*", eval: "eval-*"}}
schema: schema.pbtxt
label: {feature: y}
features: {x: {kind: numeric}}
model: refused_models:recurrent
train: {batch_size: 64}
evaluate: {metrics: [ExampleCount]}
"""
ONE = "shape { dim { size: 1 } } presence { min_fraction: 1 }"
SCHEMA = f"""
feature {{ name: "x" type: FLOAT {ONE} }}
feature {{ name: "w" type: FLOAT {ONE} }}
feature {{
  name: "y" type: INT {ONE}
  int_domain {{ min: 0 max: 2 is_categorical: true }}
}}
"""

Check = Callable[..., "AcceleratorCheck"]


@pytest.fixture(scope="session")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The config of the project."""
    root = tmp_path_factory.mktemp("refused")
    (root / "configs").mkdir()
    (root / "schema.pbtxt").write_text(SCHEMA)
    (root / "configs" / "refused.yaml").write_text(CONFIG)
    shutil.copy(MODELS, root)
    sys.path.insert(0, str(root))
    yield root / "configs" / "refused.yaml"
    sys.path.remove(str(root))
    sys.modules.pop("refused_models", None)


@pytest.fixture(scope="session")
def check(refused: Path) -> Check:
    """Checks a config, by default the project's, on an accelerator."""

    def call(
        accelerator: Literal["tpu", "gpu"], *overrides: str, config: Path = refused
    ) -> AcceleratorCheck:
        import tensorflow as tf

        from pipeline.checks.check_accelerator import check_accelerator

        tf.keras.backend.clear_session()
        valid = validate_config(load_config(str(config), overrides=overrides))
        return check_accelerator(valid.config, accelerator)

    return call
