"""Equality, ranges and order over the values of fields: a plugin of svc."""
