"""The processes that serve a database: each writes beside it that it lives, and what it finds wrong.

Whoever asks (``svc status``, ``svc plugins doctor``, health) reads what all of them have written.
"""
