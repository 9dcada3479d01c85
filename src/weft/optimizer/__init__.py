"""Many queries → few trees: which queries share their partial aggregation, and at what cost."""
