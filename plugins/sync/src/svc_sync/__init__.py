"""A cluster of databases that hold the same files: registers of paths, and how they are kept and exchanged.

What stands in this folder and has no I/O says what nodes agree on; ``exchange`` is a node at work.
"""
