"""The files plugin: files, links and blobs of a database, over HTTP and at the shell.

Every request or command reads one version, or makes one transaction of operations on paths.
"""
