"""Takes the bearer tokens of an OpenID Connect issuer.

The issuer signs callers in; this auth mode checks its tokens and maps their claims to a user and to groups.
What the groups may do is granted in svc, by the plugin ``users``.
"""
