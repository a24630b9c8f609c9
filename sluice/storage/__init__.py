"""Files: on a disk or in a bucket, written whole, and what is known of them."""
