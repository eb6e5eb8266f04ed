"""Reading of tables: containers, columns, blocks of rows and sums over them."""
