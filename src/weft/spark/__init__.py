"""The only room that knows Spark: session, sources, rows, evaluation and the batch loop."""
