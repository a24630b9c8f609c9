"""Cache of node outputs: keys, lookup, and checks that a pipeline is up to date."""
