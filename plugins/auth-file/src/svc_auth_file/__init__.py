"""Sign-in of the users that a file names."""
