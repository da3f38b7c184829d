"""The documentation at ``/docs/``: pages that packaging has built, and a page that tries requests."""
