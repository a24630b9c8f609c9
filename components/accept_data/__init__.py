"""Records accepted data in the baseline store, for comparison with later data."""
