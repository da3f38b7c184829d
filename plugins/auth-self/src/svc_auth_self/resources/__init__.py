"""The routes of the plugin."""
