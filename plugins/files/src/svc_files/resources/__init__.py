"""The HTTP resources of the files plugin.

A request with its context flows in; each resource acts on the database through one reading or one
transaction, and an answer in the documented shape flows out.
"""
