"""The plugin has no hooks: its operations are in the descriptor."""
