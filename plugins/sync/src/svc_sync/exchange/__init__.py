"""A node at work: what it keeps in the database, and how it brings itself to what other nodes know.

Everything that changes registers, rows or the node's times is one transaction that replaces ``sync/state``
on condition that it is what was read: so processes of one database need no other lock.
"""
