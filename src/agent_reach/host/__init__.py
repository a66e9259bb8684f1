"""Facts of this host that a plan needs: who calls, which interpreter, what lies at a path.

Everything here looks, and changes nothing. The kernel's own abilities are `linux.probe`.
"""
