"""The only code that talks to the kernel below Python's `os`: one file per mechanism, no policy."""
