"""The command ``svc verify``."""
