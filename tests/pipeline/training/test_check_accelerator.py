"""What a TPU refuses in a training."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.tf

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
feature {{
  name: "y" type: INT {ONE}
  int_domain {{ min: 0 max: 2 is_categorical: true }}
}}
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The config of a project whose models a TPU refuses."""
    root = tmp_path_factory.mktemp("refused")
    (root / "configs").mkdir()
    (root / "schema.pbtxt").write_text(SCHEMA)
    (root / "configs" / "refused.yaml").write_text(CONFIG)
    shutil.copy(MODELS, root)
    sys.path.insert(0, str(root))
    yield root / "configs" / "refused.yaml"
    sys.path.remove(str(root))
    sys.modules.pop("refused_models", None)


@pytest.fixture
def check(refused: Path) -> Callable[..., None]:
    """Checks a config, by default the project's."""

    def call(*overrides: str, config: Path = refused) -> None:
        import tensorflow as tf

        from pipeline.checks.check_accelerator import check_on_tpu

        tf.keras.backend.clear_session()
        valid = validate_config(load_config(str(config), overrides=overrides))
        check_on_tpu(valid.config)

    return call


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model=refused_models:looks", "XLA cannot compile the train step: "),
        ("model=refused_models:texts", "AsString"),
        ("model=refused_models:python", "EagerPyFunc"),
        ("model=refused_models:prints", "StringFormat"),
        ("model=refused_models:raises", "cannot build the model: ValueError: "),
        ("model=refused_models:does_not_train", "NotImplementedError: no training yet"),
        ("train.fine_tune={freeze: [dence]}", "no layer is named 'dence'"),
        ("train.metrics=[{class: AUC, params: {curve: none}}]", "cannot be compiled"),
        ("preprocessing=refused_models:sparse", "these are sparse: ['x_xf']"),
    ],
)
def test_whatever_a_tpu_refuses_is_told(check, override, message):
    own = ["features=null"] if override.startswith("preprocessing") else []
    with pytest.raises(ConfigError, match="the training cannot run on a TPU") as caught:
        check(override, *own)
    assert message in " ".join(caught.value.what.split())


def test_a_model_that_a_tpu_takes_passes(check):
    check("train.precision=mixed_float16", "train.steps_per_execution=4")


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "config",
    sorted((own_root() / "configs").glob("*.yaml")),
    ids=lambda path: path.stem,
)
def test_bundled_configs_pass_on_a_tpu(check, config):
    check(
        "train.precision=mixed_bfloat16",
        "train.batch_size=null",
        "train.batch_per_replica=8",
        config=config,
    )
