"""The fingerprint of files that lie in a bucket, of their sizes and times alone."""

from __future__ import annotations

from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.window import Window

LISTING = "listing "


def fingerprint_listing(window: Window) -> str:
    """Returns ``listing`` and a digest; no file is read for it.

    Raises:
      UsageError: a file is gone, or cannot be looked at.
    """
    lister = FileLister(window.base)
    return LISTING + window.fingerprint(
        lambda file: "{} {}".format(*lister.state(window.relative(file)))
    )
