"""The routes: users, groups, grants, and the explanation of what they add up to. All are root's."""
