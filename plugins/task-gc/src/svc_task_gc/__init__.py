"""Garbage collection: as a task, by a route and at the shell."""
