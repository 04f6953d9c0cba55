#!/usr/bin/env python3
"""`cubist manifest`, `cubist list` and the user's configuration, from outside.

    manifest_test.py TOOL
"""
import json
import pathlib
import sys
import tempfile

from cli import SOURCE, Tool, check, check_fails, manifest, sha256


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return text


def check_pins(tool, folder):
    project = folder / "project"
    text = put(project / "kernels/mine.json", manifest("a", "b"))
    (project / "below").mkdir()
    here = {"at": project, "CUBIST_PROJECT": None}

    added = tool("manifest", "add", "kernels/mine.json", **here)
    check(added.code == 0 and sha256(text) in added.out, "add pins a file", added)
    pins = json.loads((project / "cubist.json").read_text())
    check(pins["manifests"] == {"mine": {"path": "kernels/mine.json", "sha256": sha256(text)}}, "what was pinned")
    added = tool("manifest", "add", "flashinfer-0.6.13", "--json", **here)
    check(added.code == 0 and added.json()["replaced"] is None, "add pins a shipped name", added)
    pins = json.loads((project / "cubist.json").read_text())
    check("path" not in pins["manifests"]["flashinfer-0.6.13"], "a shipped name is found by its name")

    below = {"at": project / "below", "CUBIST_PROJECT": None}
    found = tool("list", "--manifest", "mine", "--names", **below)
    check(found.code == 0 and found.out.split() == ["a", "b"], "a pinned name is found from below", found)
    listed = tool("manifest", "list", "--json", **below)
    rows = {row["name"]: row for row in listed.json()["manifests"]}
    check(listed.code == 0 and rows["mine"]["pinned"] == sha256(text), "list shows pins", listed)
    check("pinned" not in rows["cubist-decode"], "list shows what is not pinned too", listed)
    check(tool("list", **below).out == tool("manifest", "list", **below).out, "list without --manifest is the same")
    check_fails(tool("list", "--manifest", "mine", at=folder), 2, "mine", "; there is cubist-aux, cubist-decode, flashinfer-0.6.")
    put(project / "cubist.json", (project / "cubist.json").read_text().replace(pins["manifests"]["flashinfer-0.6.13"][
        "sha256"], "0" * 64))
    check_fails(tool("list", "--manifest", "flashinfer-0.6.13", **below), 4,
                "'cubist manifest add flashinfer-0.6.13 --replace'")
    repinned = tool("manifest", "add", "flashinfer-0.6.13", "--replace", **below)
    check(repinned.code == 0, "what the error hints at works", repinned)

    put(project / "kernels/mine.json", manifest("a", "c"))
    ranges = ["--model", "gpt-oss-120b", "--device", "b200", "--batch", "1..4", "--max-q-len", "1", "--max-kv-len",
              "64..128", "--page-size", "32"]
    problem = ["--device", "b200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--batch", "1",
               "--max-kv-len", "64"]
    for command in (["list"], ["fetch", "--all"], ["verify"], ["status"], ["select", *problem],
                    ["launch", "--dry-run"], ["working-set", *ranges]):
        check_fails(tool(*command, "--manifest", "mine", **below), 4, "kernels/mine.json", sha256(text), "cubist.json",
                    f"'cubist manifest add {project}/kernels/mine.json --as mine --replace'")
    for command in (["manifest", "validate", "mine"], ["manifest", "diff", "mine", "mine"], ["map", "mine", *ranges],
                    ["gc", "--max-size", "1GiB", "--pin", "mine"]):
        check_fails(tool(*command, **below), 4, "kernels/mine.json", sha256(text), "cubist.json")
    listed = tool("manifest", "list", "--json", **here)
    check_fails(listed, 4, "mine")
    check([row["name"] for row in listed.json()["manifests"] if "error" in row] == ["mine"], "list names it")
    check_fails(tool("manifest", "add", "kernels/mine.json", **here), 2, "--replace", sha256(text))
    replaced = tool("manifest", "add", "kernels/mine.json", "--replace", "--json", **here)
    check(replaced.code == 0 and replaced.json()["replaced"] == sha256(text), "--replace pins anew", replaced)
    check(tool("list", "--manifest", "mine", "--names", **below).out.split() == ["a", "c"], "and it is found")
    (project / "kernels/mine.json").unlink()
    check_fails(tool("manifest", "list", **here), 2, "kernels/mine.json")


def check_add_refuses(tool, folder):
    project = folder / "refusals"
    text = put(project / "m.json", manifest("a"))
    here = {"at": project, "CUBIST_PROJECT": None}
    put(project / "broken.json", "{")
    put(project / "a b.json", text)
    for arguments, code, words in [
            (["m.json", "--sha256", "0" * 64], 4, ["nothing was pinned"]),
            (["m.json", "--sha256", "12"], 2, ["64 hexadecimal digits"]),
            (["m.json", "--as", "x/y"], 2, ["no name"]),
            (["a b.json"], 2, ["--as"]),
            (["flashinfer-0.6.13", "--as", "other"], 2, ["--as names a file"]),
            (["broken.json"], 8, ["broken.json", "line 1"]),
            (["none.json"], 2, ["none.json"]),
            (["no-such-name"], 2, ["no-such-name"]),
            (["m.json", "--project", "none/cubist.json"], 6, ["none"])]:
        check_fails(tool("manifest", "add", *arguments, **here), code, *words)
        failed = tool("manifest", "add", *arguments, "--json", **here)
        check(failed.json()["error"]["exit_code"] == code, "--json has the error too", failed)
        check(not (project / "cubist.json").exists(), "nothing was written")
    check(tool("manifest", "add", "m.json", "--sha256", sha256(text).upper(), **here).code == 0, "the right hash")
    check(tool("manifest", "add", "m.json", **here).code == 0, "the same again is no change")
    put(project / "cubist.json", '{"schema":"cubist.project","schema_version":1,"manifests":{},"colour":1}')
    check_fails(tool("list", "--manifest", "m", **here), 2, "cubist.json", "unknown key 'colour'")
    check(tool("list", "--manifest", "m.json", **here).code == 0, "a file needs no project")


def check_precedence(tool, folder):
    """file < environment < flags, for each of stores, manifests and sources."""
    files = folder / "configured"
    put(files / "from_file/m.json", manifest("from_file"))
    put(files / "from_environment/m.json", manifest("from_environment"))
    config = put(files / "config.json", json.dumps({"manifests": [f"{files}/from_file"], "store": f"{files}/store_f",
                                                    "base_stores": [f"{files}/base_f"],
                                                    "sources": [f"{files}/source_f"]}))
    by_file = {"CUBIST_CONFIG": f"{files}/config.json", "CUBIST_STORE": None, "CUBIST_MANIFESTS": None}
    by_both = {**by_file, "CUBIST_STORE": f"{files}/store_e", "CUBIST_MANIFESTS": f"{files}/from_environment",
               "CUBIST_STORE_BASE": f"{files}/base_e", "CUBIST_SOURCES": f"{files}/source_e"}

    def layers(*flags, **variables):
        return tool("status", "--json", *flags, **variables).json()["store"]

    def kernel(**variables):
        return tool("list", "--manifest", "m", "--names", **variables).out.strip()

    check(kernel(**by_file) == "from_file", "manifests by file")
    check(kernel(**by_both) == "from_environment", "manifests by environment")
    check(tool("list", "--manifest", f"{files}/from_file/m.json", "--names", **by_both).out.strip() == "from_file",
          "manifests by flag")
    for flags, variables, word in [([], by_file, "_f"), ([], by_both, "_e"),
                                   (["--store", f"{files}/store_x"], by_both, "store_x")]:
        verified = tool("verify", "--json", *flags, **variables).json()
        check(verified["store"].endswith(word), "stores", None)
        check(verified["layers"][1].endswith(variables.get("CUBIST_STORE_BASE", "base_f")[-6:]), "base stores")
    for flags, variables, word in [([], by_file, "source_f"), ([], by_both, "source_e"),
                                   (["--source", f"{files}/source_x"], by_both, "source_x")]:
        check_fails(tool("fetch", "--manifest", "m", "--all", *flags, **variables), 2, f"{files}/{word}")

    doctor = tool("doctor", "--json", **by_file).json()
    check(doctor["configuration"] == {"file": f"{files}/config.json",
                                      "sets": ["CUBIST_MANIFESTS", "CUBIST_STORE", "CUBIST_STORE_BASE",
                                               "CUBIST_SOURCES"]}, "doctor shows what the file set")
    check(doctor["store"]["root"].endswith("store_f"), "and the store that follows")

    put(files / "config.json", config.replace('"store"', '"stoer"'))
    reported = tool("doctor", **by_file)
    check_fails(reported, 2, "setting(s) are wrong")
    check("config.json" in reported.out and "unknown key 'stoer'; known here are manifests, store" in reported.out and
          "manifest  " in reported.out, "doctor reports it, and the rest", reported)
    for command in (["list"], ["verify"], ["select", "--help"]):
        run = tool(*command, **by_file)
        if command[-1] == "--help":
            check(run.code == 0, "--help works with a broken configuration", run)
        else:
            check_fails(run, 2, "config.json", "unknown key 'stoer'", "manifests, store")
    check(tool("list", "--json", **by_file).json()["error"]["code"] == "invalid_argument", "as JSON too")
    check_fails(tool("list", CUBIST_CONFIG=f"{files}/none.json"), 2, "none.json")


def check_manifest_work(tool, folder):
    old, new = folder / "old.json", folder / "new.json"
    put(old, manifest("same", "gone", "bytes", "traits"))
    put(new, manifest("same", "came", "bytes", "traits", bytes_of={"bytes": b"other"}))
    changed = json.loads(new.read_text())
    changed["packs"][0]["kernels"][3]["traits"]["smem"] = 8
    put(new, json.dumps(changed))
    found = tool("manifest", "diff", old, new, "--json")
    diff = found.json()
    check(found.code == 0 and diff["unchanged"] == 1, "diff counts what is equal", found)
    for key, name in (("added", "came"), ("removed", "gone"), ("other_bytes", "bytes"), ("other_traits", "traits")):
        check([row["name"] for row in diff[key]] == [name], f"diff: {key}", found)
    check("! bytes  sha256" in tool("manifest", "diff", old, new).out, "diff as text")

    needy = json.loads(new.read_text())
    needy["packs"][0]["min_driver"] = "13.0"
    put(folder / "needy.json", json.dumps({**needy, "schema_version": 2}))
    found = tool("manifest", "diff", new, folder / "needy.json")
    check("^ same  min_driver none -> 13.0\n" in found.out and "4 other min_driver alone (^), 0 unchanged" in found.out,
          "diff shows another need of the driver", found)
    rows = tool("manifest", "diff", folder / "needy.json", new, "--json").json()["other_min_driver"]
    check(len(rows) == 4 and rows[0]["min_driver"] == "min_driver 13.0 -> none", "as JSON too")
    both = tool("manifest", "merge", new, folder / "needy.json", "-o", "-")
    check(both.code == 0 and [pack["min_driver"] for pack in both.json()["packs"]] == ["13.0"], "merge keeps the higher", both)

    for flags, expected in ((["--name", "c*"], 1), (["--arch", "sm_100"], 4), (["--dtype-q", "bf16"], 4),
                            (["--head-dim", "64"], 4), (["--phase", "decode"], 4)):
        cut = tool("manifest", "subset", new, *flags, "-o", folder / "cut.json", "--json")
        check(cut.code == 0 and cut.json()["kernels"] == expected, f"subset {flags}", cut)
        check(tool("manifest", "validate", folder / "cut.json").code == 0, "a subset is a valid manifest")
    rows = json.loads(new.read_text())["packs"][0]["kernels"]
    put(folder / "set.json", json.dumps({
        "schema": "cubist.working_set", "schema_version": 1, "manifests": ["new"],
        "kernels": [{"name": row["name"], "pack": "pack", "sha256": row["sha256"], "size": row["size"]} for row in rows[:2]]}))
    of_set = tool("manifest", "subset", new, "--working-set", folder / "set.json", "-o", folder / "cut.json", "--json")
    check(of_set.code == 0 and of_set.json()["kernels"] == 2, "subset --working-set", of_set)
    both = tool("manifest", "subset", new, "--working-set", folder / "set.json", "--name", "c*", "-o", folder / "cut.json", "--json")
    check(both.json()["kernels"] == 1, "with a filter", both)
    check_fails(tool("manifest", "subset", old, "--working-set", folder / "set.json", "-o", folder / "empty.json"), 2, "'came'")
    check_fails(tool("manifest", "subset", new, "--head-dim", "128", "-o", folder / "empty.json"), 2, "no kernel")
    check_fails(tool("manifest", "subset", new, "--dtype-q", "fp9", "-o", folder / "empty.json"), 2, "fp9")
    check(not (folder / "empty.json").exists(), "nothing was written")

    check_fails(tool("manifest", "merge", old, new, "-o", folder / "both.json"), 8, "bytes.cubin", "another sha256")
    put(new, manifest("same", "more"))
    merged = tool("manifest", "merge", old, new, "--manifest-name", "both", "-o", folder / "both.json", "--json")
    check(merged.code == 0 and merged.json()["name"] == "both", "merge", merged)
    check(merged.json()["kernels"] == 5 and merged.json()["dropped"] == 1, "each kernel once", merged)
    check(tool("manifest", "validate", folder / "both.json").code == 0, "what was merged is valid")
    check_fails(tool("manifest", "merge", old, new, "-o", folder / "none/both.json"), 6, "none/both.json")

    put(folder / "bad.json", "[]")
    bad = tool("manifest", "validate", old, folder / "bad.json", "--json")
    check(bad.code == 8, "an invalid manifest is exit code 8", bad)
    check([row["valid"] for row in bad.json()["manifests"]] == [True, False], "each has its verdict", bad)


def check_list(tool, folder):
    put(folder / "list.json", manifest("a", "b", name="m"))
    listed = tool("list", "--manifest", folder / "list.json", "--json").json()
    check(listed["manifest"] == "m" and listed["count"] == 2, "list counts")
    check(listed["kernels"][0]["name"] == "a" and listed["kernels"][0]["arch"] == "sm_100f", "list has the facts")
    text = tool("list", "--manifest", folder / "list.json")
    check(text.code == 0 and "2 of 2 kernels" in text.out, "list as text", text)
    nothing = tool("list", "--manifest", folder / "list.json", "--dtype-kv", "e2m1", "--json")
    check(nothing.code == 0 and nothing.json()["count"] == 0, "no kernel is no error", nothing)
    check_fails(tool("list", "--manifest", folder / "list.json", "--head-dim", "x"), 2, "--head-dim")
    check(tool("list", "--colour").code == 2, "an unknown flag is a usage error")
    check_fails(tool("list", "--manifest", folder), 6, str(folder))


def check_no_rules(tool, folder):
    put(folder / "rules.json", manifest("a"))
    problem = ["--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--batch", "1", "--max-kv-len", "64"]
    run = tool("select", "--manifest", folder / "rules.json", "--device", "b200", *problem)
    check_fails(run, 3, "pack 'pack'", "revision is none", "--revision")
    run = tool("select", "--manifest", folder / "rules.json", "--device", "h100", *problem)
    check_fails(run, 3, "no pack of the manifest")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        for part in (check_pins, check_add_refuses, check_precedence, check_manifest_work, check_list, check_no_rules):
            part(tool, folder)
    check(pathlib.Path(SOURCE, "src/LAYERS").is_file(), "the source tree")


main(sys.argv[1])
