"""Processes of a run: zygote, process pool, jobs, and their clean-up."""
