"""Looks after databases: checks every byte, repairs what is damaged, takes objects from one into another.

It may use what the kernel keeps for itself; plugins may use ``verification`` and ``transfer``.
"""
