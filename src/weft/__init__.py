"""Weft: hundreds of standing SQL queries over a few streams, woven into one pipeline on Spark."""

__version__ = "0.1.0"
