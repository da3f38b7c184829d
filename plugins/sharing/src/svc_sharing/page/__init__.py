"""The pages that a link opens, as text: no state, no requests, nothing loaded from elsewhere."""
