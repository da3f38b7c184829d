"""A cluster of real servers, disturbed in many ways: in the end all nodes agree and nothing is lost."""
