"""Versions of a database as files: export, patch, import and promote, over HTTP and at the shell.

The kernel reads and verifies stored records; here are the format of the files, who may ask for them, where
they go, and what is reported.
"""
