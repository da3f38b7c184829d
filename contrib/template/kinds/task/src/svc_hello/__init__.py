"""Counts files below a directory."""
