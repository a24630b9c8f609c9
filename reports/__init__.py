"""The HTML review of a run, drawn from its record alone. Nothing is here yet."""
