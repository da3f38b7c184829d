"""The routes of queries, searches and the state of the index."""
