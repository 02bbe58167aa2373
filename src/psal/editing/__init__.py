"""The edits of photographs: a registry, one file per edit, and their steps."""
