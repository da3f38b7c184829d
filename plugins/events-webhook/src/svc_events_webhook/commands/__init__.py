"""The command of the plugin."""
