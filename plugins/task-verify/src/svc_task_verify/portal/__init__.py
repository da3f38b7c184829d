"""The page of verifications in the portal, for root: what is damaged, and a button that looks again."""
