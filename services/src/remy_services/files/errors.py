"""What goes wrong with a file."""


class FileError(Exception):
    """One sentence about a file that cannot be read or written, or that holds something else."""


def reason(error: OSError) -> str:
    """Why the operating system refused, in lower case and without numbers or names."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
