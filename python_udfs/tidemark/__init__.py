"""Tidemark: TiCDC binary change-event streams to tables, files and database writes."""
