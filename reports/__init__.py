"""Drawings of pipelines' graphs: text, Mermaid and SVG."""
