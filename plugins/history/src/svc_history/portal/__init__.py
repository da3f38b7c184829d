"""The pages of the history in the portal: histories with comparisons, restoring and blame, the log, commits.

They call the operations of this plugin, and of ``versions``, as a client does, and decide nothing themselves.
"""
