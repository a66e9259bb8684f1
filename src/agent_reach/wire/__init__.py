"""What passes between outside and inside: codecs without input and output of their own, for Python 3.9 and up."""
