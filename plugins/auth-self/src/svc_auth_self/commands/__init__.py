"""The commands of the plugin."""
