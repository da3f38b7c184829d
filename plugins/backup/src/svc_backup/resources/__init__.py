"""The routes, all root's: export, diff, import, promote. Files stream, and are never held as a whole."""
