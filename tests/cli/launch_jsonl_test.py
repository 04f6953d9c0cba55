#!/usr/bin/env python3
"""`cubist launch --dry-run --jsonl` against every recording of the published runtime: the plan, the parameter bytes,
the descriptors and the extra launches. Then its own lines: addresses, errors, files, flags.

    launch_jsonl_test.py TOOL
"""
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

from cli import SOURCE, Tool, check, check_fails

# What a recording has beside a launch: its problem, and the questions about clusters that it was made with.
NOT_COMPARED = {"in", "occupancy_queries"}
MUST_HAVE = {"kernel", "sha256", "grid", "cluster", "params_size", "params_hex", "params_hex_offset", "tensor_maps",
             "reduction_kernel", "lse_kernel"}


def recordings(release):
    path = f"{SOURCE}/tests/golden/select/selection-{release}.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def dry_run(tool, release, problems, *flags):
    lines = "".join(json.dumps(problem) + "\n" for problem in problems)
    done = subprocess.run([tool.program, "launch", "--dry-run", "--jsonl", "--quiet", "-m", f"flashinfer-{release}",
                           *flags], input=lines, capture_output=True, text=True, check=False, env=tool.environment)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    check(len(answers) == len(problems), f"{len(answers)} answers to {len(problems)} lines: {done.stderr}")
    return done.returncode, answers


def splits_head_groups(recording):
    """A launch that puts heads of two KV groups into one CTA, which selection refuses."""
    problem = recording["in"]
    heads_per_kv = problem["num_q_heads"] // problem["num_kv_heads"]
    step_q = recording["step_q"]
    return problem["phase"] == "decode" and heads_per_kv > step_q and heads_per_kv % step_q != 0


def check_release(tool, release):
    recorded = recordings(release)
    code, answers = dry_run(tool, release, [line["in"] for line in recorded], "--strict")
    check(code == 0, "no line is malformed")
    counts = {"equal": 0, "refused alike": 0, "mixed groups refused": 0}
    fields = 0
    for recording, ours in zip(recorded, answers):
        problem = recording["in"]
        check(ours["in"] == problem, f"{problem['id']} is answered under its own problem")
        if not recording["ok"]:
            check(not ours["ok"], f"{problem['id']} is refused")
            counts["refused alike"] += 1
        elif splits_head_groups(recording):
            check(not ours["ok"] and "two KV groups" in ours["error"]["message"], f"{problem['id']} is refused by name")
            counts["mixed groups refused"] += 1
        else:
            check(ours["ok"], f"{problem['id']} is launched: {ours.get('error')}")
            check(MUST_HAVE <= recording.keys(), f"{problem['id']} is a whole recording")
            for field in recording.keys() - NOT_COMPARED:
                check(field in ours and ours[field] == recording[field],
                      f"{problem['id']} {field}: recorded {recording[field]}, ours {ours.get(field)}")
                fields += 1
            counts["equal"] += 1
    check(sum(counts.values()) == len(recorded), "every line is in one of the counts")
    print(f"{release}: {len(recorded)} recordings: " + ", ".join(f"{n} {what}" for what, n in counts.items()) +
          f"; {fields} fields compared")
    return counts["equal"], len(recorded)


def check_recordings(tool):
    equal, total = 0, 0
    for release in ("0.6.13", "0.6.8"):
        counts = check_release(tool, release)
        equal, total = equal + counts[0], total + counts[1]
    check(total == 5000 and equal > 3300, f"{equal} launches of {total} lines are compared")
    print(f"{total} recordings compared in all, {equal} launches equal in every field")


def qword(answer, offset):
    at = 2 * (offset - answer["params_hex_offset"])
    return int.from_bytes(bytes.fromhex(answer["params_hex"][at:at + 16]), "little")


def check_addresses(tool):
    shape = {"num_q_heads": 64, "num_kv_heads": 8, "batch": 4, "max_kv_len": 4096, "lse": True}
    moved = {"q": "0x7f0000000000", "k": 4096, "workspace": "0x123400", "lse": 64, "seq_lens_kv": 8}
    _, (made_up, inside, beside) = dry_run(tool, "0.6.13", [shape, {**shape, "addresses": moved},
                                                            {"in": shape, "addresses": moved}])
    check(made_up["ok"] and inside["ok"] and beside["ok"], "all three are answered")
    check(inside["params_hex"] == beside["params_hex"] and inside["tensor_maps"] == beside["tensor_maps"],
          "addresses in the problem and beside it are the same")
    check(made_up["tensor_maps"][0]["addr"] == "0x100000000000", "q's made-up address")
    check([m["addr"] for m in inside["tensor_maps"]][:3] == ["0x7f0000000000", "0x1000", "0x300000000000"],
          "q and k are where the line says, v where it was")
    check(qword(made_up, 1080) == 0x710000000000 and qword(inside, 1080) == 8, "seq_lens_kv at its published offset")
    check(qword(inside, 984) == 0x123400, "counters are at the start of the workspace")
    check(inside["lse_kernel"]["scalars"][:2] == [0x123400 + 8388608, 64], "the LSE kernel's scalars follow")
    mla = {"num_q_heads": 128, "num_kv_heads": 1, "head_dim_qk": 576, "head_dim_vo": 512, "is_mla": True,
           "page_size": 32, "addresses": {"k": "0x8000"}}
    _, (answer,) = dry_run(tool, "0.6.13", [mla])
    check([m["addr"] for m in answer["tensor_maps"]][1:3] == ["0x8000", "0x8000"], "MLA has K and V in one cache")


def check_refusals(tool):
    shape = {"num_q_heads": 64, "num_kv_heads": 8}
    rows = [({**shape, "addresses": {"q": 8}}, "invalid_argument", "tensor 'q': address 0x8"),
            ({**shape, "addresses": {"k": 0}}, "invalid_argument", "tensor 'k': address 0x0"),
            ({**shape, "addresses": {"o": 4}}, "invalid_argument", "tensor 'o': address 0x4"),
            ({**shape, "kv_stride_tokens": 129}, "invalid_argument", "kv_stride_tokens is 129"),
            ({**shape, "addresses": {"queue": 8}}, "invalid_argument", "addresses: queue"),
            ({**shape, "addresses": {"q": "4096"}}, "invalid_argument", "addresses: q"),
            ({**shape, "addresses": {"q": -4}}, "invalid_argument", "addresses: q"),
            ({**shape, "addresses": {"sage_scales": [16, 32]}}, "invalid_argument", "four addresses"),
            ({**shape, "sum_seq_q": 1 << 40}, "invalid_argument", "sum_seq_q"),
            ({"num_q_heads": 63, "num_kv_heads": 8}, "invalid_argument", "num_q_heads")]
    code, answers = dry_run(tool, "0.6.13", [problem for problem, _, _ in rows])
    check(code == 0, "a refused problem is no malformed line")
    for (problem, kind, words), answer in zip(rows, answers):
        check(not answer["ok"] and answer["error"]["code"] == kind and words in answer["error"]["message"],
              f"{problem}: expected {kind} with '{words}', got {answer}")
        check("params_hex" not in answer, "a refusal has no parameters")
    code, (answer,) = dry_run(tool, "0.6.13", [{**shape, "num_heads": 8}])
    check(code == 2 and "num_heads" in answer["error"]["message"] and "line 1" in answer["error"]["message"], "a malformed line is named")


def check_decode(tool):
    """Our own family: 512 bytes from the start, K and V maps where the kernel is persistent."""
    problems = [{"sm": 90, "num_sms": 132, "num_q_heads": 64, "num_kv_heads": 8, "head_dim_qk": size, "batch": 8,
                 "max_kv_len": 8192, "max_q_len": q} for size in (64, 128) for q in (1, 4)]
    lines = "".join(json.dumps(problem) + "\n" for problem in problems)
    done = subprocess.run([tool.program, "launch", "--dry-run", "--jsonl"], input=lines, capture_output=True, text=True,
                          check=False, env=tool.environment)
    check(done.returncode == 0 and "4 plans" in done.stderr, f"four plans are counted: {done.stderr}")
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        check(answer["params_size"] == 512 and len(answer["params_hex"]) == 1024, "the whole block is shown")
        check(qword(answer, 0) == 0x100000000000 and qword(answer, 56) == 0x710000000000, "q and seq_lens_kv")
        persistent = answer["scheduler"] == 1
        check([m["slot"] for m in answer["tensor_maps"]] == (["k", "v"] if persistent else []), "maps of K and V")


def check_limits(tool):
    """A line whose CTAs no counter or grid can hold is refused as itself, and ends nothing."""
    shape = {"sm": 90, "num_sms": 132, "head_dim_qk": 128}
    rows = [({**shape, "num_q_heads": 64, "num_kv_heads": 8, "max_q_len": 1 << 29, "max_kv_len": (1 << 31) - 1}, True),
            ({**shape, "num_q_heads": 64, "num_kv_heads": 64, "max_q_len": (1 << 29) + 1, "max_kv_len": 1 << 29}, True),
            ({**shape, "num_q_heads": 32768, "num_kv_heads": 32768, "max_q_len": 1 << 20, "batch": 1000}, True),
            ({**shape, "num_q_heads": 128, "num_kv_heads": 1, "max_q_len": 1 << 30, "max_kv_len": 1 << 30,
              "batch_invariant": True}, False),
            ({**shape, "num_q_heads": 128, "num_kv_heads": 1, "is_mla": True, "head_dim_qk": 576, "head_dim_vo": 512,
              "max_q_len": 1 << 30, "max_kv_len": 1 << 30}, False),
            ({**shape, "num_q_heads": 64, "num_kv_heads": 8}, True)]
    lines = "".join(json.dumps(problem) + "\n" for problem, _ in rows)
    for words in (["select", "--jsonl"], ["launch", "--dry-run", "--jsonl"]):
        done = subprocess.run([tool.program, *words, "--quiet", "-m", "cubist-decode"], input=lines, capture_output=True,
                              text=True, check=False, env=tool.environment)
        check(done.returncode == 0, f"{words}: no line ends the run: {done.returncode} {done.stderr}")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        check(len(answers) == len(rows), f"{words}: each line is answered")
        for (problem, fits), answer in zip(rows, answers):
            check(answer["ok"] == fits, f"{words}: {problem}: {answer}")
            if fits:
                check(1 <= min(answer["grid"]) and answer["grid"][0] < 1 << 31, f"{words}: {problem}: {answer['grid']}")
                continue
            said = answer["error"]["message"]
            check(answer["error"]["code"] == "unsupported" and f"max_q_len is {problem['max_q_len']}" in said and
                  "none holds more than 2147483647" in said, f"{words}: {said}")


def check_scales(tool):
    """A scale that is 0 as float32 is not taken for one that was not given."""
    shapes = {"flashinfer-0.6.13": {"num_q_heads": 64, "num_kv_heads": 8},
              "cubist-decode": {"sm": 90, "num_sms": 132, "num_q_heads": 64, "num_kv_heads": 8}}
    for manifest, shape in shapes.items():
        for field in ("bmm1_scale", "bmm2_scale"):
            values = (0, 1e-46, -1e-300, 1e39, 1e-44)
            lines = "".join(json.dumps({**shape, field: value}) + "\n" for value in values)
            done = subprocess.run([tool.program, "launch", "--dry-run", "--jsonl", "--quiet", "-m", manifest],
                                  input=lines, capture_output=True, text=True, check=False, env=tool.environment)
            *refused, taken = map(json.loads, done.stdout.splitlines())
            for value, answer in zip(values, refused):
                check(not answer["ok"] and answer["error"]["code"] == "invalid_argument" and
                      f"{field} is " in answer["error"]["message"] and "not 0 as float32" in answer["error"]["message"],
                      f"{manifest}, {field} {value}: {answer}")
            check(taken["ok"] and len(refused) == 4, f"{manifest}: the smallest {field} is taken: {taken}")
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in shape.items()]
        if manifest == "flashinfer-0.6.13":
            flags += ["--device", "b200"]
        check_fails(tool("launch", "--dry-run", "-m", manifest, *flags, "--bmm1-scale", "1e-46"), 2, "bmm1_scale is 1e-46")


def check_flags(tool, folder):
    problem = json.dumps({"num_q_heads": 64, "num_kv_heads": 8}) + "\n"
    path = pathlib.Path(folder) / "problems.jsonl"
    path.write_text(problem * 3)
    flags = ["launch", "--dry-run", "--jsonl", "-m", "flashinfer-0.6.13"]
    from_file = tool(*flags, path)
    check(from_file.code == 0 and len(from_file.out.splitlines()) == 3, "a file of problems is read", from_file)
    check("3 plans" in from_file.err, "what was answered is counted", from_file)
    check_fails(tool(*flags, folder + "/none.jsonl"), 2, "none.jsonl", "No such file")
    check_fails(tool("launch", "--jsonl", path), 2, "--jsonl", "--dry-run")
    check_fails(tool("launch", "--dry-run", path), 2, "problems.jsonl", "--jsonl")
    check_fails(tool(*flags, path, "--batch", "4"), 2, "--batch", "--jsonl")
    check_fails(tool(*flags, path, "--device", "b200"), 2, "--device", "--jsonl")
    text = tool("launch", "--help").out
    for words in ("--jsonl", "params_hex", "addresses", "tensor maps", "problems.jsonl"):
        check(words in text, f"the help speaks of {words}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], folder)
        check_recordings(tool)
        check_addresses(tool)
        check_refusals(tool)
        check_decode(tool)
        check_limits(tool)
        check_scales(tool)
        check_flags(tool, folder)


main()
