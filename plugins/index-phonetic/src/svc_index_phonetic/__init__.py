"""Values that sound alike: a plugin of svc."""
