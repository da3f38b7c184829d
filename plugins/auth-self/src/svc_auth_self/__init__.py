"""Sign-in with API keys and tokens that the database keeps."""
