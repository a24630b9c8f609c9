"""The linter's findings in ``validate`` and ``compile``: texts, exit codes, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.config import Config
from runners.cloud.lint.finding import Finding
from runners.cloud.lint.lint_spec import lint_spec
from runners.cloud.spec import Spec
from sluice.project import own_root

Sluice = Callable[..., tuple[int, str, str]]

GIVEN = (
    *("--set", "cloud.root=gs://bucket/sluice"),
    *("--set", "cloud.image=europe-west4-docker.pkg.dev/p/sluice/digits"),
    *("--set", "data.dir=gs://bucket/data/digits"),
)
# Too long for a command line.
WORD = "a" * 140_000
OWN = """
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component

@component
def Tell(words: Parameter[list[str]]):
    pass
"""


@pytest.mark.unit
def test_submit_tells_errors_of_the_config_without_tfx(
    sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_root())
    code, out, err = sluice("submit", "digits", "--set", "cloud={}", "--json")
    assert code == 2
    first, *lines = err.splitlines()
    assert first == "error: the pipeline 'digits' cannot run on Vertex AI: 4 problems"
    assert lines[0] == (
        "  - --set cloud, cloud.root: there is no cloud.root; write it into a "
        "profile, or add --set cloud.root=gs://BUCKET/FOLDER"
    )
    document = json.loads(out)
    assert document["exit_code"] == 2
    assert [f"  - {_line(item)}" for item in document["findings"]] == lines


def _line(finding: dict[str, str]) -> str:
    kind = "warning: " if finding["severity"] == "warning" else ""
    return f"{kind}{finding['where']}: {finding['what']}; {finding['fix']}"


@pytest.mark.tf
def test_validate_tells_all_of_config_and_compiled_pipelines(
    sluice: Sluice, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: without a bucket nothing was compiled, and never for a schedule."""
    (project / "own_lint").mkdir()
    # Without __init__.py, so no package that an image would hold.
    (project / "own_lint" / "nodes.py").write_text(OWN)
    monkeypatch.chdir(project)
    linted = []

    def spy(spec: Spec, config: Config) -> list[Finding]:
        linted.append({task.id for task in spec.tasks})
        return lint_spec(spec, config)

    monkeypatch.setattr("runners.cloud.compile_spec.lint_spec", spy)
    node = f"{{component: 'own_lint.nodes:Tell', parameters: {{words: [{WORD}]}}}}"
    code, out, _ = sluice(
        *("validate", "digits", "--set", "cloud={}", "--json"),
        *("--set", f"nodes={{Told: {node}}}"),
    )
    assert code == 2
    findings = json.loads(out)["findings"]
    whats = [item["what"] for item in findings]
    assert whats[:7] == [
        "there is no cloud.root",
        "there is no cloud.image",
        "there is no cloud.region",
        "the data, data/digits, is on this machine",
        "it would not hold modules of the nodes: own_lint.nodes",
        "a list reaches its executor as JSON text",
        "the task's inputs have 140,328 bytes, 140,008 of them here; a command line "
        "takes 131,072 in one argument",
    ]
    plain, scheduled = linted
    assert scheduled - plain == {"AdvanceWatermark"}


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
    assert err.startswith("warning: --set cloud.region: Vertex AI had no ")
    [finding] = json.loads(out)["findings"]
    assert finding["severity"] == "warning"
    assert (tmp_path / "job.json").exists()
