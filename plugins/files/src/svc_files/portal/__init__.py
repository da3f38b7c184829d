"""The pages of files in the portal: directories, files with previews, and what can be done to them.

They call the operations of this plugin as a client does, and decide nothing themselves.
"""
