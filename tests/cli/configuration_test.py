#!/usr/bin/env python3
"""A user's configuration file that cannot be read, as in a home that is another user's.

    configuration_test.py TOOL
"""
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


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        check_unreadable(tool, folder)
        check_no_home(tool, folder)
        check_lost_links(tool, folder)


main(sys.argv[1])
