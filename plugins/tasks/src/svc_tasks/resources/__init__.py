"""The routes of tasks and of schedules. All of them are root's."""
