"""Traces of the requests of svc for OpenTelemetry."""
