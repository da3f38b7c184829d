"""No authentication: every request is root's. For one person on one machine, and for tests."""
