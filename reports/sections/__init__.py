"""Sections of the report of a run; each ``build`` prepares what its template shows."""
