#!/usr/bin/env python3
"""scripts/build-aux-kernels --check passes on the checkout, and fails on one changed byte of a copy."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

CUBIN = "kernels/prebuilt/aux/cubist_lse_sm90a.cubin"
APPENDED = ["kernels/aux/reduce.cuh", "src/model/aux_params.h", CUBIN, "kernels/prebuilt/aux/other.cubin"]
REPLACED = [("manifests/cubist-aux.json", '"size":', '"size":1'),
            ("kernels/prebuilt/aux/PROVENANCE.json", '"sha256": "', '"sha256": "0')]


def check(script, root):
    done = subprocess.run([sys.executable, script, "--check", "--root", root], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def appended(name):
    def change(root):
        with open(root / name, "ab") as file:
            file.write(b"\n")
    return change


def replaced(name, old, new):
    def change(root):
        text = (root / name).read_text()
        assert old in text, f"{name} has no {old!r}"
        (root / name).write_text(text.replace(old, new, 1))
    return change


def main(root):
    script = root / "scripts" / "build-aux-kernels"
    code, text = check(script, root)
    print(text, end="")
    if code != 0:
        return 1
    changes = {f"{name} grown": appended(name) for name in APPENDED}
    changes |= {f"{name} changed": replaced(name, old, new) for name, old, new in REPLACED}
    changes[f"{CUBIN} missing"] = lambda copy: (copy / CUBIN).unlink()
    for what, change in changes.items():
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch)
            for folder in ("kernels/aux", "kernels/prebuilt/aux", "src/model"):
                shutil.copytree(root / folder, copy / folder)
            (copy / "manifests").mkdir()
            shutil.copy(root / "manifests/cubist-aux.json", copy / "manifests")
            change(copy)
            code, text = check(script, copy)
            if code != 1:
                print(f"{what}, and the check says: {text}")
                return 1
    print(f"{len(changes)} planted changes found")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
