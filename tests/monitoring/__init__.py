"""Servers of svc that a real Prometheus watches."""
