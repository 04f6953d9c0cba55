#!/usr/bin/env python3
"""Every environment variable that src/ and tools/ read is in the list of known ones, and no other."""
import pathlib
import re
import sys

LIST = "src/registry/environment_names.cpp"
READ = re.compile(r"\b(?:getenv|environment|environment_text|environment_value|from_environment|env)\w*\(\s*\"(CUBIST_[A-Z_]+)\"")


def main(root):
    known = set(re.findall(r'"(CUBIST_[A-Z_]+[A-Z])"', (root / LIST).read_text()))
    known -= {"CUBIST_TEST_", "CUBIST_FAKE_"}
    read = set()
    for folder in ("src", "tools"):
        for path in sorted((root / folder).rglob("*.cpp")):
            if str(path.relative_to(root)) != LIST:
                read |= set(READ.findall(path.read_text()))
    problems = [f"{name} is read, but {LIST} does not know it" for name in sorted(read - known)]
    for name in sorted(known - read):
        used = any(f'"{name}"' in path.read_text() for folder in ("src", "tools")
                   for path in (root / folder).rglob("*.cpp") if str(path.relative_to(root)) != LIST)
        if not used:
            problems.append(f"{name} is in {LIST}, but nothing reads it")
    print("\n".join(problems) or f"{len(known)} variables, all known")
    return 1 if problems else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
