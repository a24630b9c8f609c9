"""A TFMA without the private names that are changed is used as it is."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tf


def _never(*_):
    raise AssertionError


@pytest.mark.parametrize("lacks", ["nothing", "a name", "a known version"])
def test_batches_are_kept_only_where_all_names_are_there(lacks, monkeypatch):
    import apache_beam as beam
    from tensorflow_model_analysis.api import model_eval_lib
    from tensorflow_model_analysis.metrics import example_count

    from sluice.patches import tfma

    if lacks == "a name":
        monkeypatch.delattr(example_count, "_ExampleCountCombiner")
    elif lacks == "a known version":
        monkeypatch.setattr(tfma, "KNOWN_VERSIONS", ("0.1.",))
    default = model_eval_lib.default_extractors
    with tfma.keep_batches(_never, _never, beam.CombineFn):
        is_replaced = model_eval_lib.default_extractors is not default
    assert is_replaced == (lacks == "nothing")
    assert model_eval_lib.default_extractors is default


@pytest.mark.parametrize("is_there", [True, False])
def test_thresholds_are_tfmas_where_a_name_is_missing(is_there, monkeypatch):
    from tensorflow_model_analysis.metrics import calibration_histogram, metric_types

    from sluice.patches import tfma

    if not is_there:
        missing = (calibration_histogram, "no_such_name")
        monkeypatch.setattr(tfma, "_NAMES", (missing,))
    computations = metric_types.registered_metrics()["AUC"]().computations()
    combiners = [type(getattr(each, "combiner", None)) for each in computations]
    assert (tfma.LogOddsHistogram in combiners) == is_there
