"""ImportExampleGen that names the file when the bytes are bad."""
