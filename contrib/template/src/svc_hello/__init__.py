"""Says hello: a plugin to copy.

Names flow in, by a route and by a command; greetings flow out. A view counts what happens in the database.
"""
