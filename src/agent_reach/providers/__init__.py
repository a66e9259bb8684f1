"""Secrets and settings from where they live, resolved outside the sandbox and only from the contract."""
