"""The commands: export, diff, import and promote.

They report as lines or as JSON, and work on a file that a server has open, or through the server.
"""
