"""The pages of backups in the portal, for root: what there is, exports to save, and imports."""
