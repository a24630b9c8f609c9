"""A check that the exported model answers, in a fresh process, before it is pushed."""
