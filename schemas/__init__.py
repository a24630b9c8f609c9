"""Reviewed schemas, one folder per data set, and what reads them.

A schema is edited by hand and decides what data may train: types, presence, domains.
"""
