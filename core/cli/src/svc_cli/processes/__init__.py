"""The processes that serve a database: each writes beside it that it lives, and its findings.

``svc status``, ``svc plugins doctor`` and health read the files of all processes.
"""
