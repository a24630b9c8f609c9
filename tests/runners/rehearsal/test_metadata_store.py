"""The emulated metadata store: artifact queries and cached tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.rehearsal.metadata_store import MetadataStore, QueryError, StoredArtifact

pytestmark = pytest.mark.unit


def _store(path: Path) -> MetadataStore:
    store = MetadataStore(path)
    for blessed, uri in ((1.0, "gs://b/1"), (0.0, "gs://b/2"), (1.0, "gs://b/3")):
        metadata = {"blessed": blessed, "why": "no, really", "final": True}
        artifact = StoredArtifact(store.new_name(), "tfx.ModelBlessing", uri, metadata)
        store.publish("digits", {"blessing": [artifact]})
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
def test_newest_artifact_that_a_filter_selects(
    tmp_path: Path, query: str, uri: str | None
) -> None:
    found = _store(tmp_path / "metadata.json").find_latest("digits", query)
    assert (found.uri if found else None) == uri


def test_other_pipelines_see_nothing(tmp_path: Path) -> None:
    """Vertex AI scopes a query to the pipeline's context."""
    store = _store(tmp_path / "metadata.json")
    assert store.find_latest("taxi", "state=LIVE") is None


@pytest.mark.parametrize(
    "query", ["state=LIVE OR state=DEAD", "create_time>3", "state!=LIVE", ""]
)
def test_other_filters_are_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(QueryError, match="is not understood"):
        _store(tmp_path / "metadata.json").find_latest("digits", query)


def test_store_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    store = MetadataStore(path)
    artifact = StoredArtifact(store.new_name(), "test.Thing", "/x", {"n": 1.5})
    store.publish("digits", {"thing": [artifact]}, "key")
    again = MetadataStore(path)
    assert again.cached("digits", "key") == {"thing": [artifact]}
    assert again.cached("taxi", "key") is None
    assert again.new_name() != artifact.name
