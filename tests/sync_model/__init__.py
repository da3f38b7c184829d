"""A cluster in memory: nodes that write, meet, break off, leave and come back, and the law that must hold.

Everything that decides is the plugin's own code; the nodes here only keep what a database would.
"""
