"""JSON Lines as tables in the portal: a preview, and a page with more of a file."""
