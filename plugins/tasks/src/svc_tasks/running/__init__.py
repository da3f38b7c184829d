"""Runs tasks: the supervisor in the background process, and the process of each task.

``supervisor`` decides what runs and writes down what became of it, ``process`` is one child as it sees it,
``child`` is the program of that child, ``protocol`` what they say to each other.
"""
