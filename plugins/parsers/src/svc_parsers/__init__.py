"""Reads fields from documents of many formats: a plugin of svc."""
