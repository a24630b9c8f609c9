"""Reviewed schemas, one folder per data set, and their loader and editor.

A schema is edited by hand and decides what data may train: types, presence, domains.
"""
