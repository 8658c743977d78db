"""Plans as text, JSON and pictures."""
