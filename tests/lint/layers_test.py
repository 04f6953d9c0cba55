#!/usr/bin/env python3
"""Holds every #include of src/ and tools/ against src/LAYERS.

A room may include itself and the rooms its row names; a third-party header only where the row names
its library. The test proves itself first on a made-up violation, so that it cannot pass by finding
nothing.
"""
import pathlib
import re
import sys

LIBRARY_OF_PREFIX = {
    "openssl/": "openssl", "fmt/": "fmt", "spdlog/": "spdlog", "tl/": "expected", "zlib.h": "zlib",
    "nlohmann/": "json", "simdjson.h": "simdjson", "curl/": "curl", "dlfcn.h": "dl", "CLI/": "cli11",
}
# Every room speaks Result and writes messages: these two come with base.
EVERYWHERE = {"fmt", "expected"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def read_layers(text):
    layers = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        room, rest = line.split(":", 1)
        rooms, libraries = rest.split("|", 1)
        layers[room.strip()] = (set(rooms.split()), set(libraries.split()) | EVERYWHERE)
    return layers


def violations(layers, room, file_name, text):
    rooms, libraries = layers[room]
    for _, header in INCLUDE.findall(text):
        target = header.split("/", 1)[0]
        if "/" in header and target in layers and target not in rooms | {room}:
            yield f"{file_name}: room '{room}' may not include '{header}' (see src/LAYERS)"
        if target == "cubist" and room not in ("capi", "tools"):
            yield f"{file_name}: only capi and tools may include '{header}'"
        for prefix, library in LIBRARY_OF_PREFIX.items():
            if header.startswith(prefix) and library not in libraries:
                yield f"{file_name}: room '{room}' may not use {library} ('{header}')"


def one_way(layers):
    order = list(layers)
    for room, (rooms, _) in layers.items():
        for other in rooms:
            if other not in layers:
                yield f"src/LAYERS: '{room}' names an unknown room '{other}'"
            elif order.index(other) > order.index(room):
                yield f"src/LAYERS: '{room}' may include '{other}', which stands below it"


def main(root):
    layers = read_layers((root / "src/LAYERS").read_text())
    planted = list(violations(layers, "selector", "planted", '#include "registry/store.h"\n#include <curl/curl.h>'))
    assert len(planted) == 2, "the lint does not see a planted violation"
    problems = list(one_way(layers))
    files = 0
    for room in layers:
        folder = root / ("tools" if room == "tools" else f"src/{room}")
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".inc", ".def"):
                files += 1
                problems += violations(layers, room, path.relative_to(root), path.read_text())
    for folder in (root / "src").iterdir():
        if folder.is_dir() and folder.name not in layers:
            problems.append(f"src/{folder.name} has no row in src/LAYERS")
    print("\n".join(problems) or f"{files} files in {len(layers)} rooms: every include is allowed")
    return 1 if problems or files < 20 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
