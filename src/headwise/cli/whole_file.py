"""Files of text that commands write: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from headwise.cli.errors import UserError


def write(target: Path, content: str) -> None:
    """Write the whole file or nothing: under another name first, then renamed.

    Raises:
        UserError: the file system refuses.
    """
    scratch = None
    target = target.resolve()  # through a link to the file itself
    try:
        if target.exists() and not target.is_file():  # a pipe or a device: never replaced by a file
            target.write_text(content, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            scratch = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        scratch.chmod(0o666 & ~mask)  # like any new file, not the private mode of a temporary one
        scratch.replace(target)
    except OSError as error:
        raise UserError(f"--out {target}: can't be written: {error.strerror or error}") from None
    finally:
        if scratch is not None:
            scratch.unlink(missing_ok=True)
