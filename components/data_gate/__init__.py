"""Fails when the data verdict has not passed, so that nothing after it runs."""
