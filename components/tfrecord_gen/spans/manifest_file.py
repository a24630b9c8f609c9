"""The name of the file that says what lies beside it."""

MANIFEST_FILE = "manifest.json"
