"""A task that indexes files again."""
