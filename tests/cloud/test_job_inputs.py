"""Copies of local files for a job, in the emulated bucket."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners.cloud.cloud_locations import CloudLocations
from runners.cloud.job_inputs import upload
from sluice.errors import UsageError
from sluice.storage import digest
from sluice.storage.local_copy import local_copy

pytestmark = pytest.mark.cloud

NAME = st.sampled_from(["a b", "100%", "%2F", "ü", "a#b", "a?b", "a+b&c=d", "+", ".x"])
NAME |= st.text(st.characters(exclude_categories=["C"], exclude_characters="/"))
NAME = NAME.filter(lambda name: 0 < len(name.encode()) < 40 and name.strip("."))
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_changed_since_the_compilation_is_not_uploaded(
    bucket, tmp_path, is_folder
):
    """Found: it became the content of another digest, for all later runs."""
    locations = CloudLocations("", None, None, "", "", inputs_uri=bucket.uri("inputs"))
    file = tmp_path / "model" / "weights"
    file.parent.mkdir()
    file.write_text("as compiled")
    locations.store_input(file.parent if is_folder else file, "models")
    (item,) = locations.uploads.values()
    file.write_text("edited")
    with pytest.raises(UsageError, match="has changed since it was compiled") as caught:
        upload(item)
    assert caught.value.where == str(item.path)
    assert bucket.names() == []
    file.write_text("as compiled")
    upload(item)
    assert len(bucket.names()) == 1


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(PATH, st.binary(max_size=20), min_size=1, max_size=5))
def test_a_directory_is_in_the_bucket_as_it_is_on_disk(bucket, tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("made") / "the model, 100 %"
    for name, content in files.items():
        path = folder / name
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    locations = CloudLocations("", None, None, "", "", inputs_uri=bucket.uri("inputs"))
    uri = locations.store_input(folder, "models")
    upload(locations.uploads[uri])
    assert digest.of_tree(uri) == digest.of_tree(folder)
    with local_copy(uri) as copy:
        assert digest.of_tree(copy) == digest.of_tree(folder)
    upload(locations.uploads[uri])
