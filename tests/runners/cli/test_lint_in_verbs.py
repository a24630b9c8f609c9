"""The linter's findings in ``validate`` and ``compile``: texts, exit codes, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.project import own_root

Sluice = Callable[..., tuple[int, str, str]]

GIVEN = (
    *("--set", "cloud.root=gs://bucket/sluice"),
    *("--set", "cloud.image=europe-west4-docker.pkg.dev/p/sluice/digits"),
    *("--set", "data.dir=gs://bucket/data/digits"),
)
OWN_NODE = "{component: 'own_lint.nodes:Tell', parameters: {words: [a]}}"
OWN = """
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component

@component
def Tell(words: Parameter[list[str]]):
    pass
"""


@pytest.mark.unit
@pytest.mark.parametrize("verb", ["validate", "compile", "submit"])
def test_errors_of_the_config_are_told_without_tfx(
    verb: str, sluice: Sluice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(own_root())
    output = ["-o", str(tmp_path / "job.json")] if verb == "compile" else []
    code, out, err = sluice(verb, "digits", "--set", "cloud={}", *output, "--json")
    assert code == 2
    first, *lines = err.splitlines()
    assert first == "error: the pipeline 'digits' cannot run on Vertex AI: 4 problems"
    assert lines[0] == (
        "  - --set cloud={}, cloud.root: there is no cloud.root; write it into a "
        "profile, or add --set cloud.root=gs://BUCKET/FOLDER"
    )
    document = json.loads(out)
    assert document["exit_code"] == 2
    findings = [f"  - {_line(item)}" for item in document["findings"]]
    assert findings[:4] == lines[:4]
    assert not (tmp_path / "job.json").exists()


def _line(finding: dict[str, str]) -> str:
    kind = "warning: " if finding["severity"] == "warning" else ""
    return f"{kind}{finding['where']}: {finding['what']}; {finding['fix']}"


@pytest.mark.tf
def test_validate_tells_all_of_config_and_compiled_pipeline(
    sluice: Sluice, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the config alone is refused; each fault is of another stage."""
    (project / "own_lint").mkdir()
    # Without __init__.py, so no package that an image would hold.
    (project / "own_lint" / "nodes.py").write_text(OWN)
    monkeypatch.chdir(project)
    code, out, _ = sluice(
        *("validate", "digits", *GIVEN, "--json"),
        *("--set", f"nodes={{Told: {OWN_NODE}}}"),
    )
    assert code == 2
    found = [(item["severity"], item["what"]) for item in json.loads(out)["findings"]]
    assert found == [
        ("error", "there is no cloud.region"),
        ("error", "it would not hold modules of the nodes: own_lint.nodes"),
        ("error", "a list reaches its executor as JSON text"),
    ]


@pytest.mark.tf
def test_warnings_of_a_pipeline_that_compiles(
    sluice: Sluice, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(project)
    code, out, err = sluice(
        *("compile", "digits", *GIVEN, "-o", str(tmp_path / "job.json"), "--json"),
        *("--set", "cloud.region=moon-west1"),
    )
    assert code == 0, err
    assert err.startswith("warning: --set cloud.region=moon-west1: Vertex AI had no ")
    [finding] = json.loads(out)["findings"]
    assert finding["severity"] == "warning"
    assert (tmp_path / "job.json").exists()
