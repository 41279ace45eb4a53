"""Data sources, UDF registration and the session."""
