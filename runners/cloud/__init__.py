"""Compiled pipelines: what the engines of cloud services share."""
