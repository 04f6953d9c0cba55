#!/usr/bin/env python3
"""Values of flags that must not be taken for others, and usage errors under --json.

    flags_test.py TOOL
"""
import pathlib
import sys
import tempfile

from cli import Tool, check, manifest

SHAPE = ["--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--device", "b200"]
RANGES = [*SHAPE, "--batch", "1", "--max-kv-len", "..64", "--page-size", "32"]
SET = ["working-set", "-m", "flashinfer-0.6.13", *RANGES]
MAP = ["map", "flashinfer-0.6.13", *RANGES]


def refused(tool, arguments, *words):
    """Exit code 2 with these words; under --json the same as a document."""
    run = tool(*arguments)
    check(run.code == 2 and run.out == "", f"{arguments[-2:]} is refused", run)
    as_json = tool(*arguments, "--json")
    check(as_json.code == 2, f"{arguments[-2:]} is refused under --json", as_json)
    error = as_json.json()["error"]
    check(error["exit_code"] == 2 and error["code"] == "invalid_argument", "the error is a document", as_json)
    for word in words:
        check(word in run.err and word in error["message"], f"the error says '{word}'", run)


def check_numbers(tool, _):
    whole = "18446744073709551615"
    for command, flag in ((SET, "--check"), (SET, "--seed"), (MAP, "--rows"), (MAP, "--columns"), (MAP, "--panels")):
        for value in ("-1", "-9223372036854775809", "18446744073709551616", "1x", "nan"):
            refused(tool, [*command, flag, value], flag, f"'{value}'", f"0 to {whole}")
    for value in ("nan", "-nan", "inf"):
        refused(tool, ["fetch", "-m", "flashinfer-0.6.13", "--all", "--connect-timeout", value], "--connect-timeout",
                value, "86400")
    refused(tool, ["verify", "--threads", "-1"], "--threads", "-1", "1024")
    check(tool(*SET, "--check", "10", "--seed", "0").code == 0, "0 and 10 are numbers")


def check_empty(tool, folder):
    (folder / "made.json").write_text(manifest("a"))
    select = ["select", "-m", "flashinfer-0.6.13", *SHAPE, "--max-kv-len", "64"]
    for arguments in ([*select, "--batch", ""], [*MAP, "-o", ""], [*SET, "-o", ""], ["list", "--manifest", ""],
                      ["manifest", "add", folder / "made.json", "--as", ""], ["verify", "--store", ""],
                      ["manifest", "subset", folder / "made.json", "-o", "x.json", "--manifest-name", ""],
                      ["select", "-m", "", *SHAPE], ["fetch", "-m", "flashinfer-0.6.13", "--kernel", ""]):
        flag = {"-o": "--output", "-m": "--manifest"}
        named = [a for a, b in zip(arguments, arguments[1:]) if b == ""][0]
        refused(tool, arguments, flag.get(named, named), "an empty value")
    check(not (folder / "x.json").exists() and not (folder / "cubist.json").exists(), "nothing was written")


def check_usage(tool, _):
    for arguments, word in ((["list", "--colour"], "--colour"), (["nonesuch"], "'nonesuch' is no command"), (["map"], "manifest"),
                            ([*SET, "--seed"], "--seed"), ([], "subcommand")):
        refused(tool, arguments, word)
    for arguments in (["--help"], ["list", "--help", "--json"], ["--version"]):
        run = tool(*arguments)
        check(run.code == 0 and run.err == "" and "{" not in run.out[:1], "help is text", run)


def check_subset_name(tool, folder):
    (folder / "one.json").write_text(manifest("a"))
    for work in ("subset", "merge"):
        for name in ("../bad", "a b", "-x/y"):
            target = folder / "named.json"
            run = tool("manifest", work, folder / "one.json", f"--manifest-name={name}", "-o", target)
            check(run.code == 8 and name in run.err and "/name" in run.err, f"{work} refuses {name}", run)
            check(not target.exists(), "nothing was written")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        for part in (check_numbers, check_empty, check_usage, check_subset_name):
            part(tool, folder)


main(sys.argv[1])
