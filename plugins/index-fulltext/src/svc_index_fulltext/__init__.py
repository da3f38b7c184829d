"""Full-text search, ranked by BM25: a plugin of svc."""
