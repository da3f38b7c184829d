"""The versions plugin: snapshots, forks, restore and merge of a database.

A snapshot and a fork are a ref and a document in the system tree; whatever makes, moves or removes one is one
transaction.
"""
