"""Questions of nodes, carried by HTTP."""
