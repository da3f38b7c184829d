"""Answering: what a query finds, in its order, within its budget and for its caller's eyes.

Functions over a ``Snapshot`` and a plan; they know neither HTTP nor how documents are kept.
"""
