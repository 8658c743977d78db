"""Sample streams for demonstrations and tests: the same seed gives the same values."""
