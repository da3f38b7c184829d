"""The page of garbage collections in the portal, for root: what one would let go, and a button for it."""
