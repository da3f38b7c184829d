"""The commands of sharing: they ask the file, which a server may have open too, or the server."""
