"""A task that writes backups and keeps as many as it is told."""
