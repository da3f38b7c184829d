"""Events of svc in a Redis stream."""
