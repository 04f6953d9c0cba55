#!/usr/bin/env python3
"""scripts/build-kernels --check passes on the checkout, and fails on one changed byte of it.

Each change is made on a copy: a source, a cubin, the manifest and the provenance, a cubin missing and
one too many.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile


def check(script, root):
    done = subprocess.run([sys.executable, script, "--check", "--root", root], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def copy_of(root, to):
    for folder in ("kernels", "manifests", "src/model"):
        shutil.copytree(root / folder, to / folder)
    return to


def append(path, text):
    with open(path, "ab") as file:
        file.write(text)


def replace(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def main(root):
    script = root / "scripts" / "build-kernels"
    code, text = check(script, root)
    print(text, end="")
    if code != 0:
        return 1
    cubin = sorted((root / "kernels/prebuilt").glob("*.cubin"))[0].name
    changes = {
        "a source": lambda copy: append(copy / "kernels/decode/work.cuh", b"\n"),
        "the parameter block": lambda copy: append(copy / "src/model/decode_params.h", b"\n"),
        "a cubin": lambda copy: append(copy / "kernels/prebuilt" / cubin, b"\0"),
        "a missing cubin": lambda copy: (copy / "kernels/prebuilt" / cubin).unlink(),
        "one too many": lambda copy: append(copy / "kernels/prebuilt/other.cubin", b"x"),
        "the manifest": lambda copy: replace(copy / "manifests/cubist-decode.json", '"size":', '"size":1'),
        "the driver it needs": lambda copy: replace(copy / "manifests/cubist-decode.json",
                                                    '"min_driver": "13.0"', '"min_driver": "12.0"'),
        "the provenance": lambda copy: replace(copy / "kernels/prebuilt/PROVENANCE.json",
                                               '"sha256": "', '"sha256": "0'),
    }
    for what, change in changes.items():
        with tempfile.TemporaryDirectory() as scratch:
            copy = copy_of(root, pathlib.Path(scratch))
            change(copy)
            code, text = check(script, copy)
            if code != 1:
                print(f"{what} changed, and the check says: {text}")
                return 1
    print(f"{len(changes)} planted changes found")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
