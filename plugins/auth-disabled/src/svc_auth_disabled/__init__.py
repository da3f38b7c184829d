"""No authentication: the auth mode for one person on one machine, and for tests.

Requests flow in; the root identity flows out, for each of them.
"""
