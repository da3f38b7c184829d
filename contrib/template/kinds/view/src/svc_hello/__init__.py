"""Counts the transactions of each author."""
