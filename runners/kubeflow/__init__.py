"""Runs pipelines on Kubeflow Pipelines, by the client generated from its REST API."""
