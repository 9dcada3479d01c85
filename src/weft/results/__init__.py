"""Answers, read straight from the segments with DuckDB: no Spark job, from any process."""
