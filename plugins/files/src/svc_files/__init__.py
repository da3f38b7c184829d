"""The files plugin: files, links and blobs of a database, over HTTP and at the shell.

Requests and commands flow in; each becomes one reading of a version or one transaction of path
operations on the kernel's database, and bytes, listings and answers in JSON flow out.
"""
