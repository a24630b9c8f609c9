"""Metrics that only TFMA knows, checked when a run is prepared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from sluice.errors import ConfigError, ExitCode

pytestmark = pytest.mark.tf


@pytest.fixture
def check(project: Path) -> Callable[..., None]:
    def check(*metrics: str) -> None:
        from pipeline.graph.check_metrics import check_metrics

        overrides = [
            f"evaluate.metrics=[{', '.join(metrics)}]",
            "evaluate.thresholds=[]",
        ]
        config = load_config("taxi", cwd=project, overrides=overrides)
        check_metrics(validate_config(config).config)

    return check


def test_any_metric_of_tfma_or_keras_may_be_used(check):
    check("AUC", "DiagnosticOddsRatio", "KLDivergence", "ConfusionMatrixPlot")
    check("{class: FBetaScore, params: {beta: 2.0}}", "BinaryAccuracy")


def test_an_unknown_metric_names_the_nearest(check):
    with pytest.raises(ConfigError, match="no metric 'DiagnosticOdsRatio'") as caught:
        check("AUC", "DiagnosticOdsRatio")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "evaluate.metrics[1]" in str(caught.value.where)
    assert caught.value.hint == "did you mean 'DiagnosticOddsRatio'?"


@pytest.mark.parametrize("params", ["{betta: 2.0}", "{beta: -1.0}"])
def test_wrong_params_list_the_valid_ones(check, params):
    with pytest.raises(ConfigError, match="'FBetaScore' cannot be created") as caught:
        check(f"{{class: FBetaScore, params: {params}}}")
    assert "beta=1.0" in str(caught.value.expected)


def test_tfma_alone_is_not_imported_for_the_common_metrics(check, monkeypatch):
    from pipeline.graph import check_metrics

    monkeypatch.delattr(check_metrics, "metric_classes")
    check("AUC", "Precision")
