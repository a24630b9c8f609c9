"""Copies of local files for a job, in the emulated bucket."""

from __future__ import annotations

import pytest

from runners.cloud.job_inputs import CloudLocations, upload
from sluice.errors import UsageError

pytestmark = pytest.mark.cloud


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
