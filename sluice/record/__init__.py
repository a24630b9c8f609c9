"""Record of a run: events, journal, and ``run.json`` as their fold."""
