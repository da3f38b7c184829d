"""The commands: export, diff, import and promote.

Options of a shell flow in; files appear or are taken in, and a report flows out as lines or as JSON. They
work on a database that a server has open at the same time.
"""
