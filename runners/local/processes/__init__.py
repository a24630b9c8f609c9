"""The processes of a run: zygote, jobs, and how none is left behind."""
