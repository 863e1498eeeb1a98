"""How a router's experts are used and used again."""
