"""What a record, an image or a set of files must be, and which split a record is of."""
