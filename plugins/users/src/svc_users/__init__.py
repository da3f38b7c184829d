"""Users, groups and grants: who may do what."""
