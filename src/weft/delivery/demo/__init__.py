"""`weft demo`: a week at New York's airports, with a snow storm in the middle.

The queries are in the .sql files beside this one, meant to be read. `data` brings the rows,
`story` tells what happens.
"""

from weft.delivery.demo.story import run

__all__ = ["run"]
