"""Documents: what an artifact holds, as JSON for pages and comparisons.

A document is written once, by the node that made its artifact; the records of later
runs refer to the same file.
"""
