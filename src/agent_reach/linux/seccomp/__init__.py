"""System call filters: the policy as data, its compiler, and user notification."""
