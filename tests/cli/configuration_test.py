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
    check(doctor.code == 0 and "UNREADABLE" in doctor.out and str(config) in doctor.out, "doctor tells", doctor)
    found = run_as_other(tool, "doctor", "--json", **own).json()["configuration"]
    check(found["sets"] == [] and "Permission denied" in found["problem"], "doctor tells as JSON too")
    named = {**own, "CUBIST_CONFIG": config}
    check_fails(run_as_other(tool, "list", "--manifest", folder / "m.json", **named), 6, str(config))
    (home / ".config").chmod(0o755)


def check_no_home(tool, folder):
    (folder / "file").write_text("")
    run = tool("presets", HOME=folder / "file", CUBIST_CONFIG=None, XDG_CONFIG_HOME=None)
    check(run.code == 0, "a home that is no folder", run)


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        check_unreadable(tool, folder)
        check_no_home(tool, folder)


main(sys.argv[1])
