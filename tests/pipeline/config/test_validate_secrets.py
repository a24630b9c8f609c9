"""Secret references in a config: where they may be, and how they are written."""

from __future__ import annotations

import pytest

from pipeline.checks.check_config import require_secrets, validate_config
from pipeline.config.load import load_config
from pipeline.config.serialize import to_yaml, write_stored_config
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

ROOT = own_root()


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "MARKER")
    monkeypatch.delenv("UNSET", raising=False)


def validate(override: str):
    # A model of the user's own has parameters of its own.
    overrides = ["model=pipeline.training.models.cnn:build_model", override]
    return validate_config(load_config("digits", overrides=overrides, cwd=ROOT))


def test_a_reference_stays_one_wherever_the_config_is_written(tmp_path):
    config = validate("model_params.token=Bearer ${env:TOKEN}").config
    write_stored_config(config, tmp_path / "config.json")

    assert config.model_params["token"] == "Bearer ${env:TOKEN}"
    for text in (to_yaml(config), (tmp_path / "config.json").read_text()):
        assert "Bearer ${env:TOKEN}" in text
        assert "MARKER" not in text


def test_a_variable_that_is_not_set_is_refused_by_file_and_line(tmp_path):
    (tmp_path / "configs").mkdir()
    lines = (ROOT / "configs" / "digits.yaml").read_text().splitlines()
    lines = [line for line in lines if not line.startswith(("schema:", "model"))]
    lines.append("model: pipeline.training.models.cnn:build_model")
    lines.append(f"schema: {ROOT / 'schemas' / 'digits' / 'schema.pbtxt'}")
    lines.append("model_params: {auth: {token: [x, '${env:UNSET}']}}")
    (tmp_path / "configs" / "secret.yaml").write_text("\n".join(lines))

    with pytest.raises(ConfigError, match="variable UNSET is not set") as caught:
        validate_config(load_config("secret", cwd=tmp_path))

    assert caught.value.where == (
        f"configs/secret.yaml:{len(lines)}, model_params.auth.token[1]"
    )
    assert "$${env:...}" in str(caught.value.hint)


def test_references_are_refused_outside_of_parameter_values():
    with pytest.raises(ConfigError, match="cannot refer to a secret") as caught:
        validate("description=reads ${env:TOKEN}")

    allowed = "only values of model_params, nodes.*.parameters and notify can"
    assert allowed in str(caught.value)


def test_a_stored_config_is_checked_again(monkeypatch):
    config = validate("model_params.token=${env:TOKEN}").config
    require_secrets(config)
    monkeypatch.delenv("TOKEN")

    with pytest.raises(ConfigError, match="variable TOKEN is not set"):
        require_secrets(config)
