"""Configs are stored and printed without loss."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from pipeline.config.serialize import (
    privacy_of,
    read_stored_config,
    to_yaml,
    write_stored_config,
)
from sluice.privacy import Privacy
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", ["digits", "flowers", "taxi"])
def test_round_trip(tmp_path, name):
    config = validate_config(
        load_config(name, cwd=own_root(), overrides=["train.epochs=3"])
    ).config
    path = tmp_path / "config.json"
    with warnings.catch_warnings():
        # Pydantic warns on stderr where a value has not the declared type.
        warnings.simplefilter("error")
        write_stored_config(config, path)
        stored = read_stored_config(path)
    assert stored.model_dump() == config.model_dump()
    assert (stored.root, stored.train.epochs) == (config.root, 3)
    assert stored.origin.overrides == ("train.epochs=3",)
    assert stored.origin == config.origin


def test_what_the_record_may_show(tmp_path):
    path = tmp_path / "config.json"
    write_stored_config(load_config("taxi", cwd=own_root()), path)
    assert privacy_of(path) == Privacy(False, [], "big_tip")
    overrides = ["private=true", "sensitive=[company]"]
    write_stored_config(load_config("taxi", cwd=own_root(), overrides=overrides), path)
    assert privacy_of(path) == Privacy(True, ["company"], "big_tip")


def test_the_yaml_of_a_config_loads_as_the_same_config(project):
    overrides = ["train.epochs=3", "train.learning_rate={kind: cosine, epochs: 2}"]
    config = load_config("fares", overrides=overrides, cwd=project)

    text = to_yaml(config)
    (project / "configs" / "fares.yaml").write_text(text)

    assert load_config("fares", cwd=project).model_dump() == config.model_dump()
    assert text.startswith(
        f"# project root: {project}\n"
        "# from: configs/fares.yaml\n"
        "# from: --set train.epochs=3\n"
    )
    assert "dir: data/fares" in text
    assert "optimizer:\n    class: Adam\n" in text


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
# Lines longer than those that a YAML writer may wrap.
LONG = st.lists(st.sampled_from(["word", "'a'", '"b"', "# c", "é"]), min_size=12)
LINES = st.lists(LONG.map(" ".join), min_size=2).map("\n".join)
TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cn"]))
ODD = st.sampled_from(
    ["1e-3", "on", "010", "~", "", "null", "2024-01-31", "0x1", "a: b"]
)


@settings(deadline=None, max_examples=25)
@example("x" * 69 + " words are\nin a line")
@given(
    st.recursive(
        PLAIN | TEXT | LINES | ODD, lambda x: st.lists(x) | st.dictionaries(TEXT, x)
    )
)
def test_any_parameter_survives_the_yaml(tmp_path_factory, config_text, value):
    root = tmp_path_factory.getbasetemp() / "survives"
    (root / "configs").mkdir(parents=True, exist_ok=True)
    path = root / "configs" / "x.yaml"
    path.write_text(config_text)
    loaded = load_config("x", cwd=root)
    config = loaded.model_copy(update={"model_params": {"value": value}})

    text = to_yaml(config)
    path.write_text(text, encoding="utf-8")

    assert load_config("x", cwd=root).model_params == {"value": value}
    # As `sluice config` prints it, line by line.
    assert text.replace("\n", "").isprintable()
