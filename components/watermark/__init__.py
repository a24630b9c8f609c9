"""High-water mark of the data: what scheduled runs have already trained on."""
