"""Where encoded rows go."""
