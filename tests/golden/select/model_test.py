#!/usr/bin/env python3
"""Holds `cubist select` against second_model.py: on the recordings, on problems drawn around them, and on such
problems with two kernels in three taken out of the manifest.

usage: model_test.py CUBIST SOURCE_DIR [PROBLEMS_PER_RELEASE [SEED]]
"""

import collections
import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import second_model as model

FIELDS = ["kernel", "sha256", "grid", "block", "cluster", "smem", "cluster_sched_policy", "num_ctas_q", "num_ctas_kv",
          "num_tokens_per_cta_q", "num_heads_per_cta", "reshape_factor_kv"]


def draw(random_, recordings):
    """A recorded problem with some of its fields drawn again."""
    p = {k: v for k, v in random_.choice(recordings).items() if k not in ("sum_seq_q", "sum_seq_kv", "num_pages",
         "max_pages_per_seq", "q_stride_tokens", "v_stride_tokens", "lse_stride_tokens", "lse_stride_heads", "varlen_q")}
    paged = p["phase"] != "ragged"

    def again(chance, field, values):
        if random_.random() < chance:
            p[field] = random_.choice(values() if callable(values) else values)

    again(0.5, "batch", lambda: [random_.randint(1, 8), random_.randint(1, 300)])
    if p["phase"] == "decode":
        again(0.5, "max_q_len", lambda: [1, random_.randint(1, 16), random_.randint(1, 64)])
    else:
        again(0.3, "max_q_len", lambda: [random_.randint(1, 300), random_.randint(1, 9000)])
    again(0.6, "max_kv_len", lambda: [random_.randint(1, 600), random_.randint(1, 9000), random_.randint(1, 200000)])
    if random_.random() < 0.3:
        p["num_kv_heads"] = random_.choice([1, 1, 2, 4, 8])
        hpk = random_.choice([1, 2, 4, 5, 6, 7, 8, 12, 16, 18, 20, 24, 32, 33, 40, 48, 63, 64, 96, 128, 160, 256])
        p["num_q_heads"] = hpk * (1 if p.get("sparse_dynamic") else p["num_kv_heads"])
    if p.get("sparse_dynamic"):
        p["num_kv_heads"] = 1
    if paged:
        again(0.2, "page_size", [1, 16, 32, 64, 128, 256, 1024])
    again(0.1, "sm", [100, 103])
    again(0.2, "num_sms", [16, 64, 132, 142, 148, 152, 160])
    again(0.1, "window_left", [-1, 0, 31, 127, 1023, 4095])
    if p["phase"] == "context" and not p.get("causal", True):
        p["window_left"] = -1
    if not p.get("sparse_dynamic"):
        again(0.1, "skip_softmax", [0.0, 1.0])
        if p.get("sparse_mla_topk"):
            again(0.5, "sparse_mla_topk", [4, 64, 132, 640, 2048, 4096])
    if random_.random() < 0.05:
        p["chunk_size"] = random_.choice([64, 512, 8192])
        p["window_left"] = -1
        p["causal"] = True
    if random_.random() < 0.1:
        p["head_dim_qk"], p["head_dim_vo"] = random_.choice([(64, 64), (128, 128), (256, 256), (192, 128), (320, 256),
                                                             (576, 512), (512, 512), (80, 80)])
        if p.get("sparse_dynamic"):
            p["head_dim_qk"] = p["head_dim_vo"] = 512
    again(0.1, "max_active_clusters", [0, 4, 16, 40, 74])
    return p


def ask(tool, manifest, problems, *flags):
    lines = "".join(json.dumps(p) + "\n" for p in problems)
    run = subprocess.run([tool, "select", "--quiet", "--jsonl", "--manifest", manifest, *flags], input=lines.encode(),
                         stdout=subprocess.PIPE, check=False)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(problems), f"{len(answers)} answers to {len(problems)} problems"
    return answers


def differences(expected, ours):
    found = [f"{f}: {expected[f]} expected, {ours[f]}" for f in FIELDS if f in ours and expected[f] != ours[f]]
    for name, theirs in (("reduction", "reduction_kernel"), ("lse", "lse_kernel")):
        kernel = ours[theirs]
        grid = kernel and (kernel["grid"] if name == "reduction" else [kernel["grid"][0], kernel["block"][0]])
        if grid != expected[name]:
            found.append(f"{theirs}: {expected[name]} expected, {grid}")
    return found


def check(table, given, strict, loose, tally):
    p = model.Problem(given, table.old)
    row = refusal = None
    try:
        row, grid = model.published(table, p)
    except model.Refused as reason:
        refusal = str(reason)
    if row is not None and model.mixes_groups(p, row):
        row, refusal = None, "head groups"
    if row is not None:
        assert strict["ok"], f"refused: {strict['error']}; expected {row.name}"
        for ours in (strict, loose):
            found = differences(model.answer(p, row, grid), ours)
            assert not found, found
        tally["launched"] += 1
        return
    assert not strict["ok"], f"chose {strict.get('kernel')}; expected a refusal: {refusal}"
    try:
        model.check_entry(p)
    except model.Refused:
        assert not loose["ok"], f"chose {loose.get('kernel')} past an entry check: {refusal}"
        tally["entry checks"] += 1
        return
    best = model.best_that_serves(table, p)
    if best is None:
        assert not loose["ok"], f"fell back to {loose.get('kernel')}; nothing serves"
        tally["refused: " + refusal] += 1
        return
    assert loose["ok"], f"refused: {loose['error']}; {best[0].name} serves"
    assert loose["fallback"], "not marked as a fallback"
    found = differences(model.answer(p, *best), loose)
    assert not found, found
    tally["fallback: " + refusal] += 1


def thinned(manifest, path, random_):
    """The manifest without two kernels in three, for what happens where a release lacks one."""
    with open(manifest, encoding="utf-8") as file:
        document = json.load(file)
    pack = document["packs"][0]
    pack["kernels"] = [kernel for kernel in pack["kernels"] if random_.random() < 1 / 3]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


def run(tool, source, release, count, seed):
    manifest = f"{source}/manifests/flashinfer-{release}.json"
    with gzip.open(f"{source}/tests/golden/select/selection-{release}.jsonl.gz", "rt", encoding="utf-8") as file:
        recordings = [json.loads(line) for line in file]
    recorded = [recording["in"] for recording in recordings]
    random_ = random.Random(seed)
    failures = hold(tool, release, manifest, recorded + [draw(random_, recorded) for _ in range(count)], recordings)
    with tempfile.TemporaryDirectory() as folder:
        part = thinned(manifest, f"{folder}/part.json", random_)
        failures += hold(tool, release + ", a third of it", part, [draw(random_, recorded) for _ in range(count)], [])
    return failures


def hold(tool, name, manifest, problems, recordings):
    table = model.Table(manifest)
    strict = ask(tool, manifest, problems, "--strict")
    loose = ask(tool, manifest, problems)
    tally = collections.Counter()
    failures = 0
    for i, given in enumerate(problems):
        try:
            check(table, given, strict[i], loose[i], tally)
            if i < len(recordings) and recordings[i]["ok"] and strict[i]["ok"]:
                assert recordings[i]["kernel"] == strict[i]["kernel"]
        except AssertionError as error:
            failures += 1
            if failures <= 10:
                print(f"{name}: {json.dumps(given)}\n    {error}")
    print(f"{name}: {len(problems)} problems, {failures} differ; " +
          ", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
    return failures


def main():
    tool, source = sys.argv[1], Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    return 1 if sum(run(tool, source, release, count, seed) for release in ("0.6.13", "0.6.8")) else 0


if __name__ == "__main__":
    sys.exit(main())
