"""Events as Server-Sent Events."""
