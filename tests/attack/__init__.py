"""Attacks: what a careless machine, an unkind client or a hostile file does to a database."""
