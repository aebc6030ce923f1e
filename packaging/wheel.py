"""The wheel of a target, put together from compiled files.

In: a folder with the distribution's metadata, as maturin writes it; the tag; the folder to write
to; and after these pairs of a file and its path in the wheel. Out: the path of the wheel, printed.
Nothing is compiled. The same files give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import zipfile
from pathlib import Path

# The first moment that a zip file can name.
TIME = (1980, 1, 1, 0, 0, 0)


def main(info: Path, tag: str, out: Path, *pairs: str) -> None:
    lines = (info / "WHEEL").read_text().splitlines()
    head = [line for line in lines if not line.startswith("Tag:")]
    contents = {f"{info.name}/WHEEL": "\n".join([*head, f"Tag: {tag}", ""]).encode()}
    modes = {}
    for path in sorted(info.rglob("*")):
        name = f"{info.name}/{path.relative_to(info).as_posix()}"
        if path.is_file() and path.name != "RECORD":
            contents.setdefault(name, path.read_bytes())
    for source, name in zip(pairs[::2], pairs[1::2], strict=True):
        contents[name] = Path(source).read_bytes()
        modes[name] = 0o755 if os.access(source, os.X_OK) else 0o644

    record = f"{info.name}/RECORD"
    rows = [f"{name},sha256={digest(data)},{len(data)}" for name, data in contents.items()]
    contents[record] = "\n".join([*rows, f"{record},,", ""]).encode()

    wheel = out / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | modes.get(name, 0o644)) << 16
            archive.writestr(entry, data)
    print(wheel)


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
