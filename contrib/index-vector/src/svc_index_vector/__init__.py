"""Nearest neighbours of vectors: an index type and an operator for the queries of svc.

The vectors are arrays of numbers in files, made by whatever model. The library usearch finds the nearest.
"""
