"""Greets in the styles that other plugins add."""
