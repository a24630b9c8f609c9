"""Files to shards and quarantine, shared out to forked processes."""
