"""Processes of a run: zygote, process pool and jobs; none is left behind."""
