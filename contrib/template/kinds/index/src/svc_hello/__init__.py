"""Finds texts by their first letter."""
