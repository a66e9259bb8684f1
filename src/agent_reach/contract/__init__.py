"""What a `reach.yaml` may say: read, checked, laid over each other, resolved to data. No kernel in here."""
