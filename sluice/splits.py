"""Names of splits that several packages must agree on."""

from __future__ import annotations

# What clients have sent, which is no split of the data that is trained on.
SERVING = "serving"
