"""Clients that keep a copy: what changed since a version, the chunks of it, and ``svc mirror``.

The routes are in ``operations``; what stands in ``client`` runs on the machine of the copy.
"""
