"""Says hello: a plugin to copy.

An operation greets by name, over HTTP and at the shell. A view counts what happens in the database.
"""
