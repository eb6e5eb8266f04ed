"""How a table is read, row by row."""
