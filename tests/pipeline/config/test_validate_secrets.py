from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config.load import load_config
from pipeline.config.serialize import to_yaml, write_stored_config
from pipeline.config.validate import validate_config
from pipeline.config.validate_secrets import require_secrets
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

ROOT = own_root()


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "MARKER")
    monkeypatch.delenv("UNSET", raising=False)


def validate(override: str):
    return validate_config(load_config("digits", overrides=[override], cwd=ROOT))


def test_a_reference_stays_one_wherever_the_config_is_written(tmp_path: Path) -> None:
    config = validate("model_params.token=Bearer ${env:TOKEN}").config
    write_stored_config(config, tmp_path / "config.json")

    assert config.model_params["token"] == "Bearer ${env:TOKEN}"
    for text in (to_yaml(config), (tmp_path / "config.json").read_text()):
        assert "Bearer ${env:TOKEN}" in text
        assert "MARKER" not in text


def test_a_variable_that_is_not_set_is_refused_by_file_and_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "configs").mkdir()
    lines = (ROOT / "configs" / "digits.yaml").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("schema:")]
    lines.append(f"schema: {ROOT / 'schemas' / 'digits' / 'schema.pbtxt'}")
    lines.append("model_params: {auth: {token: [x, '${env:UNSET}']}}")
    (tmp_path / "configs" / "secret.yaml").write_text("\n".join(lines))

    with pytest.raises(ConfigError, match="variable UNSET is not set") as caught:
        validate_config(load_config("secret", cwd=tmp_path))

    assert caught.value.where == (
        f"configs/secret.yaml:{len(lines)}, model_params.auth.token[1]"
    )
    assert "$${env:UNSET}" in str(caught.value.hint)


@pytest.mark.parametrize(
    "override",
    [
        "data.dir=${env:TOKEN}/digits",
        "evaluate.metrics=[{class: SparseCategoricalAccuracy, name: '${env:TOKEN}'}]",
    ],
)
def test_what_is_written_down_as_it_is_used_cannot_be_a_secret(override: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(override)

    assert "cannot refer to a secret" in str(caught.value)
    assert "model_params" in str(caught.value)


def test_a_stored_config_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config = validate("model_params.token=${env:TOKEN}").config
    require_secrets(config)
    monkeypatch.delenv("TOKEN")

    with pytest.raises(ConfigError, match="variable TOKEN is not set"):
        require_secrets(config)


def test_a_malformed_reference_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no environment variable"):
        validate("model_params.token=${env:MY TOKEN}")


@pytest.mark.parametrize(
    "override", ["model_params.x=$${env:UNSET}", "description=reads ${env:UNSET}"]
)
def test_an_escaped_reference_and_a_description_refer_to_nothing(
    override: str,
) -> None:
    assert validate(override)
