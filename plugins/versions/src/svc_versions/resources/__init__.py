"""The HTTP resources of snapshots, forks, restore, merge and lifecycle settings, of both path families.

A request with its context flows in; each resource calls one function of the model, and an answer in
the documented shape flows out.
"""
