"""Histories of paths, the log, comparisons of versions, origins of lines: over HTTP and at the shell."""
