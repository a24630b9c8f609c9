"""What a node's result depends on, and whether an earlier one may stand for it."""
