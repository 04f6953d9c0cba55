"""Imports a published wheel of every generation and compares counts and the manifest's digest with
generations.json: read off those wheels once, and changed only with a reason.

A wheel is taken from the folder CUBIST_TEST_WHEELS if it is there; else, with CUBIST_TEST_NETWORK=1, by
ranges from the user's own package index (7 MB each). Without either the test is skipped (77).
Usage: generations_test.py CUBIST_TOOL
"""
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77


def without_min_driver(text):
    """The manifest as version 1 had it, of which the golden digests are."""
    return re.sub(r'\n *"min_driver": "[0-9.]+",', "", text).replace('"schema_version": 2', '"schema_version": 1')


def source_of(version):
    wheel = pathlib.Path(os.environ.get("CUBIST_TEST_WHEELS", "")) / (
        f"flashinfer_cubin-{version}-py3-none-any.whl")
    if os.environ.get("CUBIST_TEST_WHEELS") and wheel.is_file():
        return str(wheel)
    if os.environ.get("CUBIST_TEST_NETWORK") == "1":
        return f"pip:flashinfer-cubin=={version}"
    return None


def facts(tool, source, output):
    done = subprocess.run([tool, "import", "flashinfer", source, "--json", "-o", str(output)],
                          stdout=subprocess.PIPE, check=True)
    report = json.loads(done.stdout)
    stray = collections.Counter(pathlib.PurePath(finding["subject"]).suffix for finding in report["findings"]
                                if finding["kind"] == "stray_file")
    names = collections.Counter(kernel["name"] for pack in json.loads(output.read_text())["packs"]
                                for kernel in pack["kernels"])
    times = collections.Counter(names.values())
    keys = ("pack", "columns", "rows", "kernels", "revision", "param_layout")
    return {"artifact": report["artifact"],
            "tables": [{key: table[key] for key in keys} for table in report["tables"]],
            **{key: report[key] for key in ("files", "checksums", "disagreements", "counts")},
            "stray_suffixes": dict(stray),
            "names_that_occur": {str(count): times[count] for count in sorted(times)},
            "manifest_sha256": hashlib.sha256(without_min_driver(output.read_text()).encode()).hexdigest()}


def main(tool):
    golden = json.loads((pathlib.Path(__file__).parent / "generations.json").read_text())
    checked, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        for version, expected in golden.items():
            source = source_of(version)
            if source is None:
                continue
            found = facts(tool, source, pathlib.Path(folder) / "manifest.json")
            checked.append(version)
            for key in expected:
                if found[key] != expected[key]:
                    wrong.append(f"{version}: {key}: expected {expected[key]}, found {found[key]}")
    print("\n".join(wrong))
    print(f"checked: {', '.join(checked) or 'none'}; not checked: "
          f"{', '.join(v for v in golden if v not in checked) or 'none'}")
    if wrong:
        return 1
    return 0 if checked else SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
