"""HTML report of a run, rendered from its record alone. Not implemented yet."""
