"""What happens in a database, read from its log: event types, and the reader that delivery plugins use."""
