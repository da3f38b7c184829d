"""The page of searches in the portal. It asks what a client would, and shows the request that it has sent."""
