"""The emulated metadata store: artifact queries and cached tasks."""

from __future__ import annotations

import pytest

from runners.rehearsal.metadata_store import (
    MetadataStore,
    QueryError,
    StoredArtifact,
    TaskResult,
)

pytestmark = pytest.mark.unit


def _store() -> MetadataStore:
    store = MetadataStore()
    for blessed, uri in ((1.0, "gs://b/1"), (0.0, "gs://b/2"), (1.0, "gs://b/3")):
        metadata = {"blessed": blessed, "why": "no, really", "final": True}
        artifact = StoredArtifact(store.new_name(), "tfx.ModelBlessing", uri, metadata)
        store.publish("digits", TaskResult({"blessing": [artifact]}))
    return store


@pytest.mark.parametrize(
    ("query", "uri"),
    [
        ('schema_title="tfx.ModelBlessing" AND state=LIVE', "gs://b/3"),
        ("metadata.blessed.number_value=1", "gs://b/3"),
        ("metadata.blessed.number_value=0", "gs://b/2"),
        ('metadata.why.string_value="no, really" AND uri="gs://b/1"', "gs://b/1"),
        ("metadata.final.bool_value=true", "gs://b/3"),
        ("metadata.final.number_value=1", None),
        ("metadata.blessed.string_value=1", None),
        ('schema_title="tfx.Model"', None),
        ("state=DELETED", None),
    ],
)
def test_newest_artifact_that_a_filter_selects(query: str, uri: str | None) -> None:
    found = _store().find_latest("digits", query)
    assert (found.uri if found else None) == uri


def test_other_pipelines_see_nothing() -> None:
    """Vertex AI scopes a query to the pipeline's context."""
    store = _store()
    assert store.find_latest("taxi", "state=LIVE") is None


@pytest.mark.parametrize(
    "query", ["state=LIVE OR state=DEAD", "create_time>3", "state!=LIVE", ""]
)
def test_other_filters_are_refused(query: str) -> None:
    with pytest.raises(QueryError, match="is not understood"):
        _store().find_latest("digits", query)


def test_result_is_cached_for_its_pipeline() -> None:
    store = MetadataStore()
    artifact = StoredArtifact(store.new_name(), "test.Thing", "/x", {"n": 1.5})
    result = TaskResult({"thing": [artifact]}, {"loss": 0.5})
    store.publish("digits", result, "key")
    assert store.cached("digits", "key") == result
    assert store.cached("taxi", "key") is None
    assert store.new_name() != artifact.name
