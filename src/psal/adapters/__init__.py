"""Patch attention inside models of other libraries, one file per library, which must be installed to import it."""
