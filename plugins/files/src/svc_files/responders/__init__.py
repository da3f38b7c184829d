"""Responders of what is hot, streams, or is described by header fields; the operations declare them."""
