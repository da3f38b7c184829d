"""Tasks in the background and schedules."""
