"""The HTTP resources of the files plugin; each reads one version, or makes one transaction."""
