"""The pages of users, groups and rights in the portal, for root, as their operations are."""
