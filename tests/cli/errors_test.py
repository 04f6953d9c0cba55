#!/usr/bin/env python3
"""One shape of error under --json: every command with a bad flag and with runs that fail. Which commands there are
is read from the help, and the codes from docs/errors.md.

    errors_test.py TOOL
"""
import json
import pathlib
import re
import sys
import tempfile

from cli import SOURCE, Tool, check, manifest

SHAPE = ["--num-q-heads", "8", "--num-kv-heads", "1", "--device", "b200"]
NO_KERNEL = [*SHAPE, "--head-dim", "96", "--batch", "1", "--max-kv-len", "64"]
FMHA = ["--manifest", "flashinfer-0.6.13"]


def documented_codes():
    """code -> exit code; None where it depends on the signal."""
    codes = {}
    for names, number in re.findall(r"^\| (`[a-z_`, ]+`) \| ([0-9]+|128 \+ signal) \|", pathlib.Path(SOURCE, "docs/errors.md").read_text(), re.M):
        for name in re.findall("[a-z_]+", names):
            codes[name] = int(number) if number.isdigit() else None
    check(len(codes) == 17, f"docs/errors.md has every code: {sorted(codes)}")
    return codes


def commands(tool):
    """As the help lists them, subcommands behind their command."""
    found = []
    for name in re.findall(r"^  ([a-z-]+) {2,}", tool("--help").out.split("Subcommands:")[1], re.M):
        below = tool(name, "--help").out.split("Subcommands:")
        found += [(name, sub) for sub in re.findall(r"^  ([a-z-]+)(?: |$)", below[1], re.M)] if len(below) > 1 else [(name,)]
    return found


def failing_runs(folder):
    """command -> runs that fail, each (flags, exit code, variables)."""
    (folder / "garbage").write_bytes(b"garbage")
    (folder / "m.json").write_text(manifest("a", "b"))
    (folder / "other.json").write_text(manifest("a", bytes_of={"a": b"others"}))
    (folder / "bad.json").write_text("{}")
    (folder / "problems.jsonl").write_text('{"num_q_heads": 8, "head_dim_qk": 96}\nnonsense\n')
    (folder / "project.json").write_text(json.dumps({
        "schema": "cubist.project", "schema_version": 1,
        "manifests": {"mine": {"path": str(folder / "m.json"), "sha256": "0" * 63 + "1"}}}))
    broken = folder / "store/sha256/aa" / ("a" * 64 + ".cubin")
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"not what its name says")
    kept = folder / "kept/bundles"
    kept.mkdir(parents=True)
    (kept / ("b" * 64 + ".zip")).write_bytes(b"no zip")
    ours, no_gpu = ["--manifest", folder / "m.json"], {"CUBIST_LIBCUDA": "/no/libcuda.so"}
    return {
        ("import", "flashinfer"): [([folder / "nowhere"], 2, {})],
        ("inspect",): [([folder / "garbage", folder / "nothing.cubin"], 4, {}), ([folder], 2, {})],
        ("list",): [(["--manifest", folder / "nothing.json"], 2, {}), (["--manifest", folder / "bad.json"], 8, {})],
        ("manifest", "add"): [([folder / "nothing.json"], 2, {})],
        ("manifest", "list"): [([], 4, {"CUBIST_PROJECT": folder / "project.json"})],
        ("manifest", "validate"): [([folder / "m.json", folder / "bad.json", folder / "nothing.json"], 8, {})],
        ("manifest", "verify"): [([folder / "m.json", folder / "nothing.json"], 4, {})],
        ("manifest", "diff"): [([folder / "m.json", folder / "bad.json"], 8, {})],
        ("manifest", "subset"): [([folder / "m.json", "--name", "none", "-o", folder / "x.json"], 2, {})],
        ("manifest", "merge"): [([folder / "m.json", folder / "other.json", "-o", folder / "x.json"], 8, {})],
        ("fetch",): [(["--all", "--offline", *ours], 7, {}), ([], 2, {}), (["--all", *ours, "--source", folder], 6, {}),
                     (["--all", *ours, "--metrics", folder / "none/x.prom", "--source", folder], 6, {})],
        ("verify",): [([], 4, {}), (ours, 7, {})],
        ("status",): [([*ours, "--offline"], 7, {}), (["--manifest", folder / "bad.json"], 8, {})],
        ("gc",): [([], 2, {}), (["--max-size", "1", "--pin", folder / "garbage"], 2, {})],
        ("select",): [([*FMHA, *NO_KERNEL], 3, {}), ([*FMHA, *NO_KERNEL, "--explain"], 3, {}),
                      ([*FMHA, *NO_KERNEL[:-1], "64..80", "--sweep"], 3, {}), (["--compare", "one"], 2, {}),
                      ([*FMHA, "--num-q-heads", "0"], 2, {}), ([*FMHA, *NO_KERNEL, "--overrides", folder / "bad.json"], 2, {})],
        ("map",): [([folder / "nothing.json", *NO_KERNEL], 2, {})],
        ("working-set",): [([*FMHA, *NO_KERNEL], 3, {})],
        ("presets",): [(["nosuch"], 2, {})],
        ("launch",): [([*FMHA, "--dry-run", *NO_KERNEL], 3, {}), (["--num-q-heads", "8"], 9, no_gpu)],
        ("prepare",): [(ours, 9, no_gpu)],
        ("tune",): [(["-o", folder / "x.json"], 9, no_gpu)],
        ("doctor",): [([], 2, {"CUBIST_FOREIGN_STORE": "maybe"})],
        ("bundle", "create"): [([*ours, "--all", "--offline", "-o", folder / "x.zip"], 7, {})],
        ("bundle", "inspect"): [([folder / "garbage"], 4, {}), (["https://host/x.zip", "--offline"], 7, {})],
        ("bundle", "install"): [([folder / "garbage"], 4, {})],
        ("bundle", "list"): [(["--store", folder / "kept"], 4, {})],
        ("bundle", "remove"): [(["nosuch", "--store", folder / "kept"], 2, {})],
        ("push",): [([folder / "garbage", "oci://127.0.0.1:1/a:1"], 4, {})],
        ("pull",): [(["oci://127.0.0.1:1/a:1", "--tries", "1", "--connect-timeout", "1"], 5, {}), (["nowhere"], 2, {})],
    }


def check_error(error, codes, what, run):
    check(isinstance(error, dict) and list(error) == ["code", "exit_code", "message"], f"{what}: its shape is the one: {error}", run)
    check(error["code"] in codes, f"{what}: the code is documented: {error['code']}", run)
    check(codes[error["code"]] == error["exit_code"], f"{what}: the exit code of {error['code']}", run)
    check(isinstance(error["message"], str) and error["message"], f"{what}: it has a message", run)


def walk(node, codes, what, run):
    """Every "error" in a document; nothing says code and message in another way."""
    if isinstance(node, list):
        for item in node:
            walk(item, codes, what, run)
    if not isinstance(node, dict):
        return
    if "error" in node:
        check_error(node["error"], codes, what, run)
    check("error_kind" not in node and ("code" not in node or "exit_code" in node), f"{what}: no second shape", run)
    for key, value in node.items():
        if key != "error":
            walk(value, codes, what, run)


def check_run(tool, words, exit_code, codes, variables):
    what = f"cubist {' '.join(str(word) for word in words)}"
    run = tool(*words, "--json", **variables)
    check(run.code == exit_code, f"{what}: exit code {exit_code}", run)
    try:
        document = run.json()
    except ValueError:
        check(False, f"{what}: one document on standard output", run)
    walk(document, codes, what, run)
    check(document.get("error", {}).get("exit_code") == run.code, f"{what}: the document has the error", run)
    said = document["error"]["message"].splitlines()[0]
    check("cubist: error: " in run.err and said in run.err, f"{what}: the same on standard error", run)


def check_lines(tool, folder, codes):
    for words in (["select", "--jsonl", *FMHA], ["launch", "--dry-run", "--jsonl", *FMHA]):
        text = (folder / "problems.jsonl").read_text()
        run = tool(*words, "--quiet", stdin=text)
        rows = [json.loads(line) for line in run.out.splitlines()]
        check(run.code == 2 and [row["error"]["code"] for row in rows] == ["unsupported", "invalid_argument"], "line by line", run)
        for row in rows:
            walk(row, codes, " ".join(words), run)


def main():
    with tempfile.TemporaryDirectory(dir=pathlib.Path(tempfile.gettempdir()).resolve()) as scratch:
        folder = pathlib.Path(scratch)
        tool = Tool(sys.argv[1], folder)
        codes = documented_codes()
        runs = failing_runs(folder)
        known = commands(tool)
        check(set(known) == set(runs), f"every command of the help is here: {set(known) ^ set(runs)}")
        for command in known:
            check_run(tool, [*command, "--no-such-flag"], 2, codes, {})
            for flags, exit_code, variables in runs[command]:
                check_run(tool, [*command, *flags], exit_code, codes, variables)
        check_run(tool, ["nosuch"], 2, codes, {})
        check_lines(tool, folder, codes)


if __name__ == "__main__":
    main()
