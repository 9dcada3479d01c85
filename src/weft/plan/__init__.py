"""The physical plan as values: how a bound query is computed, before any engine sees it."""
