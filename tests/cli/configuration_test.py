#!/usr/bin/env python3
"""A user's configuration: files that cannot be read, settings that are wrong, and what is shown of them.

    configuration_test.py TOOL
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from cli import Run, Tool, check, check_fails, manifest

NOBODY = 65534


def run_as_other(tool, *arguments, **variables):
    """As a user whom file permissions bind."""
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {name: value for name, value in {**tool.environment, **variables}.items() if value is not None}
    return Run(subprocess.run([tool.program, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=environment, cwd="/", **other))


def check_unreadable(tool, folder):
    home = folder / "home"
    (home / ".config/cubist").mkdir(parents=True)
    config = home / ".config/cubist/config.json"
    config.write_text('{"store": "/nowhere/store"}')
    (folder / "m.json").write_text(manifest("a"))
    folder.chmod(0o755)
    (home / ".config").chmod(0o000)
    own = {"HOME": home, "CUBIST_CONFIG": None, "XDG_CONFIG_HOME": None}
    problem = run_as_other(tool, "--version")
    check(problem.code == 0, "the other user can run the tool", problem)

    listed = run_as_other(tool, "list", "--manifest", folder / "m.json", "--names", **own)
    check(listed.code == 0 and listed.out == "a\n", "a command goes on", listed)
    check(listed.err.startswith("cubist: warning: ") and str(config) in listed.err, "with a warning", listed)
    quiet = run_as_other(tool, "presets", "--quiet", **own)
    check(quiet.code == 0 and quiet.err == "", "without one under --quiet", quiet)
    doctor = run_as_other(tool, "doctor", **own)
    check(doctor.code == 0 and "WARNING" in doctor.out and str(config) in doctor.out, "doctor tells", doctor)
    found = run_as_other(tool, "doctor", "--json", **own).json()
    check(found["configuration"]["sets"] == [] and found["findings"][0]["severity"] == "warning" and
          "Permission denied" in found["findings"][0]["problem"], "doctor tells as JSON too")
    named = {**own, "CUBIST_CONFIG": config}
    check_fails(run_as_other(tool, "list", "--manifest", folder / "m.json", **named), 6, str(config))
    (home / ".config").chmod(0o755)


def check_no_home(tool, folder):
    (folder / "file").write_text("")
    run = tool("presets", HOME=folder / "file", CUBIST_CONFIG=None, XDG_CONFIG_HOME=None)
    check(run.code == 0, "a home that is no folder", run)


def check_lost_links(tool, folder):
    """A file that a link names and that is not there was meant: nothing is decided without it."""
    place = folder / "links"
    (place / "home/.config/cubist").mkdir(parents=True)
    (place / "project/below").mkdir(parents=True)
    config = place / "home/.config/cubist/config.json"
    config.symlink_to(place / "nowhere.json")
    own = {"HOME": place / "home", "CUBIST_CONFIG": None, "XDG_CONFIG_HOME": None}
    (place / "m.json").write_text(manifest("a"))
    check_fails(tool("list", "--manifest", place / "m.json", **own), 2, str(config))
    config.unlink()
    check(tool("list", "--manifest", place / "m.json", **own).code == 0, "no file is no error")
    pins = place / "project/cubist.json"
    pins.symlink_to(place / "nowhere.json")
    for at in (place / "project", place / "project/below"):
        check_fails(tool("list", "--manifest", "made", at=at, CUBIST_PROJECT=None), 2, str(pins), "leads nowhere", "CUBIST_PROJECT")
        passed = tool("list", "--manifest", "cubist-decode", at=at, CUBIST_PROJECT="")
        check(passed.code == 0, "unless it is passed by", passed)


SETTINGS = ("BEARER_TOKEN", "CONFIG", "FOREIGN_STORE", "KEY_STATEMENTS", "LIBCUDA", "LOG_LEVEL", "MANIFESTS", "MANIFEST_SIGNATURES",
            "PRESETS", "PROJECT", "PYTHON", "REVOCATIONS", "SOURCES", "STORE", "STORE_BASE", "TRUSTED_KEYS")


def check_secrets(tool, folder):
    """No command prints what a setting holds of passwords and queries, and doctor names no server either."""
    (folder / "m.json").write_text(manifest("a"))
    urls = ["https://u:sekrit@hidden.example/x/", "http://hidden.example/x?token=sekrit", "http://u:sekrit@hidden.example/ b",
            "ftp://u:sekrit@hidden.example", "u:sekrit@hidden.example/x?token=sekrit", "oci://u:sekrit@hidden.example/a:b"]
    # Reading what is shipped and asking pip takes most of the time, and shows nothing of a setting.
    quick = {"CUBIST_PYTHON": "/bin/false"}
    for name in (*SETTINGS, "PASSWORD"):
        for number, url in enumerate(urls):
            run = tool("doctor", *(["--json"] if number % 2 else []), **{**quick, f"CUBIST_{name}": url})
            for word in ("sekrit", "hidden.example"):
                check(word not in run.out + run.err, f"doctor shows '{word}' of CUBIST_{name}={url}", run)
            check(run.code in (0, 2), f"doctor with CUBIST_{name}={url}", run)
        for command in (["fetch", "--all", "--offline", "-m", folder / "m.json"], ["list", "-m", "nosuch"]):
            for url in (urls[0], urls[2]):
                run = tool(*command, **{f"CUBIST_{name}": url})
                check("sekrit" not in run.out + run.err, f"{command} shows what CUBIST_{name}={url} holds", run)
    config = folder / "secret.json"
    for key in ("sources", "trusted_keys", "manifests", "base_stores", "revocations", "key_statements", "store", "foreign_store"):
        for url in urls[:3]:
            listed = url if key in ("store", "foreign_store") else [url]
            config.write_text(json.dumps({key: listed}))
            for command in (["doctor"], ["fetch", "--all", "--offline", "-m", folder / "m.json"]):
                unset = {f"CUBIST_{name}": None for name in SETTINGS}
                run = tool(*command, **{**unset, "CUBIST_CONFIG": config, "CUBIST_PROJECT": "", "HOME": folder})
                check("sekrit" not in run.out + run.err, f"{command} shows what {key} {url} holds", run)
    source = tool("fetch", "--all", "-m", folder / "m.json", "--source", "ftp://u:sekrit@h/x?token=sekrit")
    check_fails(source, 2, "ftp://***@h/x?...")
    check("sekrit" not in source.err, "--source", source)


def check_findings(tool, folder):
    """Each wrong thing by itself, once, with what was found and what is allowed."""
    config = folder / "wrong.json"

    def findings(text):
        config.write_text(text)
        return tool("doctor", "--json", CUBIST_CONFIG=config, CUBIST_STORE=None, HOME=folder).json()["findings"]

    found = sorted(findings('{"sources": ["a b", "c d", 5, "ftp://h/x"]}'), key=lambda row: row["setting"])
    check([row["setting"].rsplit(" ")[-1] for row in found] == ["/sources/0", "/sources/1", "/sources/2"], f"all of them: {found}")
    check([row["found"] for row in found[:2]] == ["a b", "c d"] and all("oci://" in row["allowed"] for row in found), f"{found}")
    check(len(findings('{"sources": [null]}')) == 1, "null once")
    check(findings('{"sources": [null, "/nowhere"]}')[0]["setting"].endswith("/sources/0"), "and its key is left out")
    for key, value in (("trusted_keys", ["x"]), ("key_statements", ["/no/a"]), ("revocations", ["/no/b"]), ("sources", ["ftp://h"]),
                       ("store", "/a:b"), ("manifests", ["/a:b"]), ("foreign_store", "maybe")):
        row = findings(json.dumps({key: value}))[0]
        check(row["found"] and row["allowed"], f"{key}: {row}")
    config.write_text('{"store": "/a:b"}')
    check_fails(tool("list", "-m", "cubist-decode", CUBIST_CONFIG=config), 2, "/store: '/a:b' holds a ':'")
    check_fails(tool("list", "-m", "cubist-decode", CUBIST_CONFIG=folder), 2, str(folder), "is a folder")
    report = tool("doctor", "--store", folder / "elsewhere", "--json", CUBIST_STORE=None, HOME=folder).json()
    check("CUBIST_STORE" not in report["environment"], "a flag is no variable")
    lost = tool("doctor", CUBIST_PROJECT="/nope.json")
    check("CUBIST_PROJECT: cannot open '/nope.json'" in lost.out, "a problem that says what was found says it once", lost)
    twice = tool("fetch", "--all", "-m", folder / "m.json", "--source", "http://127.0.0.1:9/x/", "--source", "http://127.0.0.1:9/y/",
                 CUBIST_BEARER_TOKEN="nonsense")
    check(twice.err.count("CUBIST_BEARER_TOKEN: an entry") == 1, "a warning comes once", twice)


def check_usage(tool):
    """Errors of the parser are as all others, and name the word that is none."""
    check_fails(tool("slect"), 2, "'slect' is no command of 'cubist'", "nearest is 'cubist select'")
    check_fails(tool("bundle", "lst"), 2, "'lst' is no command of 'cubist bundle'", "nearest is 'cubist bundle list'")
    far = tool("nothing-like-it")
    check_fails(far, 2, "'nothing-like-it' is no command of 'cubist'")
    check("nearest" not in far.err, "far from all", far)
    check_fails(tool(), 2, "subcommand is required", "'cubist --help'")
    check_fails(tool("gc", "--max-size", ""), 2, "--max-size", "'cubist gc --help'")
    check_fails(tool("prepare", "--threads", "0"), 2, "--threads")
    check_fails(tool("fetch", "--nosuch"), 2, "--nosuch")
    check("'slect'" in tool("slect", "--json").json()["error"]["message"], "as a document, too")
    check(tool("--help").code == 0 and tool("bundle", "--help").code == 0 and tool("--version").code == 0, "no error is none")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        check_unreadable(tool, folder)
        check_no_home(tool, folder)
        check_lost_links(tool, folder)
        check_secrets(tool, folder)
        check_findings(tool, folder)
        check_usage(tool)


main(sys.argv[1])
