#!/usr/bin/env python3
"""What the examples call GPT-OSS has what its layers have: attention sinks, and a layer with a window.

    examples_test.py SOURCE_FOLDER
"""
import json
import pathlib
import re
import sys

SHAPE = {"num-q-heads": "64", "num-kv-heads": "8", "head-dim": "64"}
PAGES = ("README.md", "scripts/quickstart", "tools/cubist/cmd_select.cpp", "tools/cubist/cmd_launch.cpp")


def commands(text):
    """Flags of each command that spells the shape out, from its first flag to the end of the command."""
    joined = re.sub(r"\\\\?\n\s*", " ", text)
    return [match.group(0) for match in re.finditer(r"[^\n]*--num-q-heads[^\n]*(\n\s+--[^\n]*)*", joined)]


def main():
    root = pathlib.Path(sys.argv[1])
    models = {model["name"]: model for model in json.loads((root / "data/presets/models.json").read_text())["models"]}
    layers = models["gpt-oss-120b"]["attention"]
    windows = {layer.get("window_left", -1) for layer in layers}
    failures = [] if all(layer["sinks"] for layer in layers) else ["the preset of GPT-OSS has layers without sinks"]
    found = 0
    for page in PAGES:
        text = (root / page).read_text()
        for command in commands(text):
            if not all(f"--{flag} {value}" in command for flag, value in SHAPE.items()):
                continue
            found += 1
            if "--sinks" not in command:
                failures.append(f"{page}: GPT-OSS without --sinks: {command.strip()}")
        for window in re.findall(r"--window-left (\S+?)[`:;),\s]", text):
            if int(window) not in windows:
                failures.append(f"{page}: --window-left {window}; the preset has {sorted(windows)}")
    program = (root / "examples/from_c/main.c").read_text()
    if "problem.sinks = 1;" not in program or not all(f", {window})" in program for window in windows):
        failures.append(f"examples/from_c/main.c: GPT-OSS has sinks, and layers with windows of {sorted(windows)}")
    if found < len(PAGES):
        failures.append(f"only {found} commands have the shape of GPT-OSS; did the examples move?")
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
