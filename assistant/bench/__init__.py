"""Measured comparisons: decoding speed and exactness, what a step costs, quality; their records, tables and plots."""
