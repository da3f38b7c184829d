"""Pages for people: the frame, sign-in, and the families of what plugins add to it."""
