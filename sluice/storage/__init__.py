"""Storage: files on disk and in buckets, atomic writes, digests."""
