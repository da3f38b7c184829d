"""Queries against a brute-force evaluator that was written from the specification, and knows no index."""
