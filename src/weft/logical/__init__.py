"""The vocabulary: names, columns, windows and queries as immutable values."""
