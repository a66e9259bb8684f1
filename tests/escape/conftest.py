"""The containment corpus is run as root and as an ordinary user."""

from callers import caller, confined, known_callers, pytest_generate_tests  # noqa: F401 - fixtures
