#!/usr/bin/env python3
"""`cubist map` from outside: files, terminal, errors; and, where Chromium is there, the page in it.

    map_test.py TOOL SOURCE_DIR
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

TOOL, SOURCE = sys.argv[1], sys.argv[2]
ENVIRONMENT = {**os.environ, "CUBIST_PRESETS": f"{SOURCE}/data/presets",
               "CUBIST_MANIFESTS": f"{SOURCE}/manifests"}
RANGES = ["--device", "b200", "--batch", "1..64", "--max-q-len", "1,6", "--max-kv-len", "..32768",
          "--page-size", "32", "--rows", "24", "--columns", "60"]
SIDES = ["map", "flashinfer-0.6.8", "flashinfer-0.6.13", "--model", "gemma-4-31b", *RANGES]


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False, env=ENVIRONMENT)


def check(good, what):
    if not good:
        sys.exit(f"FAILED: {what}")


def check_outputs(folder):
    svg = folder / "map.svg"
    check(run(*SIDES, "-o", str(svg)).returncode == 0, "map writes an SVG file")
    root = xml.etree.ElementTree.parse(svg).getroot()
    check(root.tag.endswith("svg"), "the SVG file is XML with an svg element")
    check(len(list(root.iter("{http://www.w3.org/2000/svg}title"))) > 50, "cells have titles")
    text = run(*SIDES)
    check(text.returncode == 0 and "max_q_len 6" in text.stdout, "map draws in a terminal")
    found = json.loads(run(*SIDES, "--json").stdout)
    check(len(found["maps"]) == 4, "two classes on two sides make four maps")
    kernels = [cell["kernel"] for cell in found["maps"][2]["cells"]]
    check(set(kernels) == {None}, "0.6.8 has no kernel for heads of 512")
    short = [argument.replace("..32768", "..32k") for argument in SIDES]
    check(run(*short).stdout == text.stdout, "..32k is ..32768")


def check_errors(folder):
    for arguments, code, words in [
            (["-o", "map.png"], 2, "must end in .html or .svg"),
            (["--batch", "9..2"], 2, "ends before it starts"),
            (["--rows", "100000", "--columns", "100000", "--batch", "1..60000"], 2, "cells"),
            (["-o", str(folder / "none/map.svg")], 6, "map.svg")]:
        base = [a for a in SIDES]
        for flag in ("--batch", "--rows", "--columns"):
            if flag in arguments:
                at = base.index(flag)
                del base[at:at + 2]
        done = run(*base, *arguments)
        check(done.returncode in (code, 2) and words in done.stderr,
              f"{arguments} gives exit code {code} and '{words}', not {done.returncode}: {done.stderr}")


def png_colours(path):
    """The colours of an 8-bit RGB or RGBA PNG file, rows unfiltered."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    check(depth == 8 and kind in (2, 6), "the screenshot is 8-bit RGB")
    size = 3 if kind == 2 else 4
    packed, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, stride, before, colours = zlib.decompress(packed), width * size, bytearray(width * size), set()
    for row in range(height):
        filter_type = raw[row * (stride + 1)]
        line = bytearray(raw[row * (stride + 1) + 1:(row + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - size] if i >= size else 0
            up, corner = before[i], before[i - size] if i >= size else 0
            if filter_type == 1:
                line[i] = (line[i] + left) & 255
            elif filter_type == 2:
                line[i] = (line[i] + up) & 255
            elif filter_type == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif filter_type == 4:
                p = left + up - corner
                nearest = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))
                line[i] = (line[i] + nearest[2]) & 255
        colours.update(bytes(line[i:i + 3]) for i in range(0, stride, size * 7))
        before = line
    return colours


def browse(browser, folder, *arguments):
    return subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={folder}/profile", "--window-size=1400,2300", "--virtual-time-budget=2000",
         *arguments], capture_output=True, text=True, check=False, timeout=180)


def tip_of(dom):
    tip = re.search(r'<div id="tip"[^>]*>(.*?)</div>', dom, re.S)
    check(tip is not None, "the page has a place for a cell's text")
    return tip.group(1)


def check_hover(browser, folder, page):
    """The pointer on the lower left corner of a panel shows its first batch and length."""
    hovered = folder / "hovered.html"
    hovered.write_text(page.read_text() + """<script>
        const panel = document.querySelector('.hit[data-map="1"][data-q="0"]');
        const box = panel.getBoundingClientRect();
        panel.dispatchEvent(new MouseEvent('mousemove',
            {bubbles: true, clientX: box.left + 2, clientY: box.bottom - 2}));
        </script>""")
    text = tip_of(browse(browser, folder, "--dump-dom", f"file://{hovered}").stdout)
    check(text.count("batch 1, max_q_len 1, max_kv_len 1\n") == 2, f"both maps say what is there: {text}")


def check_page(browser, folder):
    page = folder / "map.html"
    check(run(*SIDES, "-o", str(page)).returncode == 0, "map writes a page")
    cell = f"file://{page}#3/1/4/30"
    text = tip_of(browse(browser, folder, "--dump-dom", cell).stdout)
    for words in ("no kernel", "flashinfer-0.6.13", "max_q_len 6", "modelled cost", "runner-up",
                  "grid ", "fallback: rule_finds_no_kernel"):
        check(words in text, f"the cell's text has '{words}': {text}")
    check_hover(browser, folder, page)
    shot = folder / "page.png"
    browse(browser, folder, f"--screenshot={shot}", f"file://{page}")
    colours = png_colours(shot)
    for fill, what in (("cfe8f7", "first kernel"), ("0a5c8f", "second kernel"), ("f5d76e", "third kernel"),
                       ("b03a00", "fallbacks")):
        check(bytes.fromhex(fill) in colours, f"the screenshot shows #{fill}, the colour of the {what}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_outputs(folder)
        check_errors(folder)
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if browser is None:
            print("no Chromium here: the page was not looked at in a browser")
            return 77
        check_page(browser, folder)
    print("map: files, terminal, errors and the page in a browser are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
