"""The hooks of the plugin: none, since it adds nothing but operations, and drives a family."""
