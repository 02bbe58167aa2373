"""Quality and cost of the edits on photographs. It imports nothing, so that a peer's process holds the peer alone."""
