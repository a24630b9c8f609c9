"""Pages from the records of runs: reports, comparisons, trends and graphs."""
