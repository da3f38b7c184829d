"""From a filter to a plan: the operators and indexes that answer it, and how many documents each leaves."""
