"""Delivers events to sinks, in the background process.

A thread for each sink asks it for its destinations, and each destination has a courier, a thread of its own.
One transaction a second stores how far all of them are.
"""
