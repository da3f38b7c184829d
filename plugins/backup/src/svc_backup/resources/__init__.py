"""The routes: export, diff, import and promote.

They are root's. Files stream out and in, piece by piece; none is ever held in memory as a whole.
"""
