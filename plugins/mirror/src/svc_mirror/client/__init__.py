"""The side of the copy: a directory of this machine that is kept like a directory of a server, both ways.

``state`` is what is known, ``scanning`` looks, ``deciding`` judges by values alone, ``working`` does.
"""
