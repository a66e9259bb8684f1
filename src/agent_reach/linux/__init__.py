"""What the kernel offers, as plain functions: system calls, their numbers, filters and descriptors."""
