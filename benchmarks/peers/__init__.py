"""What peers need for the same loop. Runs in an environment of its own: `make bench` builds it."""
