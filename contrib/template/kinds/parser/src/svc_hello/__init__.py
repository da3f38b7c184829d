"""Reads files of key = value lines."""
