"""Contract plus facts make a plan: pure data that can be printed, compared and tested without a kernel."""
