"""What runs inside the sandbox, beside the user's code: explanations, never a boundary. Python 3.9 or newer."""
