"""What a server has done and how it is, for Prometheus."""
