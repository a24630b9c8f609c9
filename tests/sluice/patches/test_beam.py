"""Side inputs of Beam are the same where its cache does not measure them."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tf


def test_side_inputs_without_their_sizes(monkeypatch):
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.worker import statecache
    from apache_beam.testing.util import assert_that, equal_to

    from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS
    from sluice.patches.beam import skip_sizes_in_cache

    measured = []
    measure = statecache.objsize.get_deep_size

    def counted(*values: Any, **options: Any) -> int:
        measured.append(values)
        return measure(*values, **options)

    monkeypatch.setattr(statecache.objsize, "get_deep_size", counted)
    # Put back afterwards.
    monkeypatch.setattr(statecache, "get_deep_size", statecache.get_deep_size)

    def run() -> None:
        with beam.Pipeline(options=PipelineOptions([*LOCAL_BEAM_ARGS])) as p:
            pairs = p | "pairs" >> beam.Create([("a", 1), ("b", 2)])
            names = p | "names" >> beam.Create(["x"])
            found = (
                p
                | beam.Create(range(3))
                | beam.Map(
                    lambda *values: values,
                    beam.pvalue.AsDict(pairs),
                    beam.pvalue.AsList(names),
                )
            )
            expected = [(number, {"a": 1, "b": 2}, ["x"]) for number in range(3)]
            assert_that(found, equal_to(expected))

    run()
    assert measured
    measured.clear()
    skip_sizes_in_cache()
    run()
    assert not measured
