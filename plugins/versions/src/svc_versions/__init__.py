"""The versions plugin: snapshots, forks, restore and merge of a database.

Whatever makes, moves or removes a snapshot or a fork is one transaction: of a ref, and a document beside it.
"""
