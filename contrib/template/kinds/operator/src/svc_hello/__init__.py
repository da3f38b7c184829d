"""Finds texts that are shorter than a number of letters."""
