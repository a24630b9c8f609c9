"""Checks of records, images and sets of files; assignment of records to splits."""
