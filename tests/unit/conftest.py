"""No example is timed, and fewer of them: the whole of tests/unit has to run in seconds."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("unit", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")
