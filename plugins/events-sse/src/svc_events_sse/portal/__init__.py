"""The page of events in the portal: the last ones by the server, and then whatever happens by a script."""
