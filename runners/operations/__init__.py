"""What several commands share: typed requests and results, no terminal."""
