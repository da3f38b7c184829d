"""The page of the cluster in the portal, and its card, for root: peers, and conflicts with a choice."""
