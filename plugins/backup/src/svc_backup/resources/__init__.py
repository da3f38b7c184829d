"""The routes: export, diff, import and promote.

Requests of root flow in; files stream out and in, piece by piece, and reports follow as JSON. Nothing is
ever held in memory as a whole.
"""
