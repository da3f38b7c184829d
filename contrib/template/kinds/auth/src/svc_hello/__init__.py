"""Lets in who knows a word."""
