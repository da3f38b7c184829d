"""The HTTP resources of snapshots, forks, restore, merge and lifecycle settings, of both path families."""
