#!/usr/bin/env python3
"""Every header opens with #pragma once (or a C guard), and no room's header pulls in a heavy library."""
import pathlib
import re
import sys

HEAVY = re.compile(r'#\s*include\s+[<"](nlohmann/json\.hpp|spdlog/|curl/|CLI/CLI|openssl/)')


def main(root):
    problems, files = [], 0
    for folder in ("src", "include", "tools", "tests/support"):
        for path in sorted((root / folder).rglob("*.h*")):
            if path.suffix not in (".h", ".hpp"):
                continue
            files += 1
            text = path.read_text()
            if "#pragma once" not in text and not re.search(r"#ifndef CUBIST_\w+_H", text):
                problems.append(f"{path.relative_to(root)}: no #pragma once")
            if HEAVY.search(text):
                problems.append(f"{path.relative_to(root)}: a heavy third-party header; use it in a .cpp")
    print("\n".join(problems) or f"{files} headers checked")
    return 1 if problems or files < 10 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
