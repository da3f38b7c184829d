"""``svc sync`` and ``svc conflicts``."""
