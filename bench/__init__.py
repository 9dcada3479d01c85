"""Benchmarks: one file per experiment; each prints a table. `python -m bench [name ...]`."""
