"""A task that reads everything again and says what is damaged."""
