"""Versions of a database as files: export, patch, import and promote, over HTTP and at the shell.

A version, or two of them, flows in and a file flows out; a file flows in and becomes a version. The kernel
makes and verifies the bytes; here is who may ask for them, where they go, and what is reported.
"""
