#!/usr/bin/env python3
"""Where the command line writes: files of -o that are links, FIFOs or devices, and standard output.

    output_test.py TOOL
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import threading

from cli import SOURCE, Run, Tool, check, check_fails, manifest

SHAPE = ["--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--device", "b200", "--batch", "1"]


def writers(folder):
    """Every command with -o FILE, without the FILE: what it writes with, a name for it, a word of the text."""
    made = folder / "made.json"
    made.write_text(manifest("a", "b"))
    release = ["-m", "flashinfer-0.6.13", *SHAPE, "--max-kv-len", "..64", "--page-size", "32"]
    return [(["map", "flashinfer-0.6.13", *release[2:], "-o"], "map.svg", "</svg>"),
            (["manifest", "subset", made, "-o"], "subset.json", '"cubist.manifest"'),
            (["manifest", "merge", made, "-o"], "merge.json", '"cubist.manifest"'),
            (["working-set", *release, "-o"], "set.json", '"kernels"')]


def read_fifo(path, into):
    with open(path, encoding="utf-8") as fifo:
        into.append(fifo.read())


def check_targets(tool, folder):
    for words, name, inside in writers(folder):
        fifo = folder / f"fifo-{name}"
        os.mkfifo(fifo)
        texts = []
        reader = threading.Thread(target=read_fifo, args=(fifo, texts), daemon=True)
        reader.start()
        run = tool(*words, fifo)
        check(run.code == 0, f"{words[0]} writes into a FIFO", run)
        check(stat.S_ISFIFO(os.stat(fifo).st_mode), f"{words[0]} leaves the FIFO a FIFO")
        reader.join(60)
        check(texts and inside in texts[0], f"the reader of the FIFO gets what {words[0]} writes")

        old, link = folder / f"old-{name}", folder / f"link-{name}"
        old.write_text("old")
        old.chmod(0o640)
        link.symlink_to(old.name)
        run = tool(*words, link)
        check(run.code == 0 and link.is_symlink(), f"{words[0]} leaves a link a link", run)
        check(inside in old.read_text(), f"{words[0]} writes what the link points to")
        check(stat.S_IMODE(old.stat().st_mode) == 0o640, f"{words[0]} keeps the mode of the file")

        new, dangling = folder / f"new-{name}", folder / f"dangling-{name}"
        dangling.symlink_to(new)
        check(tool(*words, dangling).code == 0 and dangling.is_symlink() and inside in new.read_text(),
              f"{words[0]} makes the file that a link points to")
        place = folder / f"folder-{name}"
        place.mkdir()
        check_fails(tool(*words, place), 6, str(place), "it is a folder")
    check(not [p for p in folder.iterdir() if len(p.suffix) == 7], "nothing is left beside the files")


def check_device(tool, folder):
    """A device node of our own with the numbers of /dev/full. Needs root, who alone could replace one."""
    node = folder / "full.svg"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        os.close(os.open(node, os.O_WRONLY))
    except OSError as error:
        print(f"no device node can be made here: {error}")
        return
    for words, _, _ in writers(folder):
        check_fails(tool(*words, node), 6, str(node), "No space left")
        check(stat.S_ISCHR(os.stat(node).st_mode), "the device is as it was")


def check_project(tool, folder):
    """`manifest add` writes cubist.json by the same way."""
    project = folder / "project"
    project.mkdir()
    (project / "mine.json").write_text(manifest("a"))
    check(tool("manifest", "add", "flashinfer-0.6.13", at=project, CUBIST_PROJECT=None).code == 0, "a project")
    (project / "cubist.json").rename(folder / "real.json")
    (folder / "real.json").chmod(0o600)
    (project / "cubist.json").symlink_to(folder / "real.json")
    added = tool("manifest", "add", "mine.json", "--as", "mine", at=project, CUBIST_PROJECT=None)
    check(added.code == 0 and (project / "cubist.json").is_symlink(), "a linked project stays a link", added)
    check("mine" in json.loads((folder / "real.json").read_text())["manifests"], "and has the pin")
    check(stat.S_IMODE((folder / "real.json").stat().st_mode) == 0o600, "and its mode")


def check_standard_output(tool, folder):
    made = folder / "list.json"
    made.write_text(manifest("a", "b"))
    commands = [["list", "--manifest", made], ["list", "--manifest", made, "--json"], ["doctor"],
                ["presets"], ["--help"], ["--version"], ["manifest", "validate", made],
                ["select", "--manifest", "flashinfer-0.6.13", *SHAPE, "--max-kv-len", "64", "--page-size", "32"],
                ["manifest", "subset", made, "-o", "-"]]
    for words in commands:
        command = [tool.program, *map(str, words)]
        where = {"env": tool.environment, "cwd": folder, "stderr": subprocess.PIPE, "text": True, "check": False}
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = Run(subprocess.run(command, stdout=full, **where))
        check_fails(run, 6, "standard output")
        closed = Run(subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stdout=subprocess.PIPE, **where))
        check_fails(closed, 6, "standard output")
        left, writer = os.pipe()
        os.close(left)
        for restore in (True, False):  # SIGPIPE as usual, and ignored
            run = Run(subprocess.run(command, stdout=writer, restore_signals=restore, **where))
            check(run.code == (-13 if restore else 0) and run.err == "", f"{words[0]}: a reader who left", run)
        os.close(writer)

    target = folder / "closed.json"
    command = [tool.program, "manifest", "subset", str(made), "-o", str(target)]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], env=tool.environment, cwd=folder,
                          check=False, stderr=subprocess.PIPE)
    check(done.returncode == 6, "what could not be said is an error")
    json.loads(target.read_text())  # and is not in the file


def names_in(value):
    """Names of members, at any depth, but of what came in."""
    for name, inner in value.items() if isinstance(value, dict) else [(None, one) for one in value if isinstance(value, list)]:
        if name is not None:
            yield name
        if name != "in" and isinstance(inner, (dict, list)):
            yield from names_in(inner)


def check_lines(tool, folder):
    """Every member of an answer is in docs/jsonl.md."""
    page = pathlib.Path(SOURCE, "docs/jsonl.md").read_text()
    problems = folder / "problems.jsonl"
    common = {"sm": 100, "num_sms": 148, "num_q_heads": 64, "num_kv_heads": 8, "head_dim_qk": 128, "page_size": 16}
    problems.write_text("".join(json.dumps({**common, **more}) + "\n" for more in (
        {"batch": 1, "max_kv_len": 1024, "lse": True}, {"batch": 1, "max_kv_len": 131072, "max_active_clusters": 0},
        {"phase": "context", "max_q_len": 64, "max_kv_len": 64, "batch": 2}, {"head_dim_qk": 77}, {"nope": 1})))
    with problems.open(encoding="utf-8") as lines:
        plans = subprocess.run([tool.program, "select", "--manifest", "flashinfer-0.6.13", "--jsonl"], stdin=lines, check=False,
                               capture_output=True, text=True, env=tool.environment, cwd=folder)
    launches = tool("launch", "--manifest", "flashinfer-0.6.13", "--dry-run", "--jsonl", problems)
    answers = [json.loads(line) for line in (plans.stdout + launches.out).splitlines()]
    check([one["ok"] for one in answers] == [True, True, True, False, False] * 2, "three plans, a refusal, a bad line", launches)
    names = {name for answer in answers for name in names_in(answer)}
    check(len(names) > 40 and any(answer.get("lse_kernel") for answer in answers), f"enough is seen: {sorted(names)}")
    unknown = [name for name in sorted(names) if f"`{name}`" not in page]
    check(not unknown, f"docs/jsonl.md says nothing of {unknown}")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        tool = Tool(program, folder)
        for part in (check_targets, check_device, check_project, check_standard_output, check_lines):
            part(tool, folder)
    check(pathlib.Path(SOURCE, "src/LAYERS").is_file(), "the source tree")


main(sys.argv[1])
