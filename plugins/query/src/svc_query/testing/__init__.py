"""The contracts of what extends queries, as tests: an author subclasses them."""
