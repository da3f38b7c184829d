"""Events as webhooks: each is a request to a URL, signed, in order, and sent again until it is taken."""
