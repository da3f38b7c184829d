"""The pages of versions in the portal: snapshots, forks and merges.

They call the operations of this plugin as a client does, and decide nothing themselves.
"""
