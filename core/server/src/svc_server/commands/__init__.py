"""The commands of the server: ``svc start`` and ``svc background``."""
