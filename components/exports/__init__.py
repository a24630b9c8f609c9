"""Exports of a model beside its SavedModel, each compared with it before a push."""
