"""Record of a run, ``run.json``: nodes, verdicts, pushes, what follows from them."""
