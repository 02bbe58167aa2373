"""The page that ``psal app`` serves: the edits of :mod:`psal.editing` with a brush, on one's own computer."""
