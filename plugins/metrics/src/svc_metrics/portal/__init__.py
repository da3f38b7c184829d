"""The page of metrics in the portal, and its card, for root: what the operation of statistics answers."""
