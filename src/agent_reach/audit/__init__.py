"""The record of every run: append-only, hash-chained, outside the reach of the code that it is about."""
