#!/usr/bin/env python3
"""What no tracked file may hold: machine paths, index hosts, published cubins, unfinished work."""
import pathlib
import re
import subprocess
import sys

FORBIDDEN = [
    (re.compile(r"/work/|/root/"), "a path of one machine"),
    (re.compile(r"\b(pypi\.org|pythonhosted\.org|deb\.debian\.org|edge\.urm)\b"), "the host of a package index"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "unfinished work"),
]
SELF = "tests/lint/words_test.py"
TEXT = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".py", ".md", ".txt", ".json", ".cmake", ".in", ".sh", ""}


def problems_in(name, text):
    for pattern, what in FORBIDDEN:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: {what}: {match.group(0)!r}"


def main(root):
    assert list(problems_in("planted", "see /" + "work/x")), "the lint does not see a planted word"
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode != 0:
        print("no git checkout here: nothing to check")
        return 77
    problems, files = [], 0
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = root / name
        if not path.is_file() or name == SELF:
            continue
        files += 1
        if path.suffix == ".cubin" and not name.startswith("kernels/prebuilt/"):
            problems.append(f"{name}: a cubin outside kernels/prebuilt")
        if path.suffix in TEXT and path.stat().st_size < 1 << 20:
            problems += problems_in(name, path.read_text(errors="replace"))
    print("\n".join(problems) or f"{files} files: nothing forbidden")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
