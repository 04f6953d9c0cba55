#!/usr/bin/env python3
"""Signed manifests, key rotation, rollback and revocation, from outside; minisign signs.

    trust_test.py TOOL
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from cli import Tool, check, check_fails, manifest, sha256

KERNELS = {"good": b"good bytes", "bad": b"bad bytes"}


class Signer:
    def __init__(self, folder, name):
        self.public, self.secret = folder / f"{name}.pub", folder / f"{name}.key"
        run = subprocess.run(["minisign", "-G", "-W", "-p", self.public, "-s", self.secret], capture_output=True,
                             check=False)
        check(run.returncode == 0, "minisign makes a key (scripts/setup installs it)")
        self.line = self.public.read_text().splitlines()[1]
        self.number = self.public.read_text().splitlines()[0].split()[-1].zfill(16)

    def sign(self, path, comment="a test"):
        subprocess.run(["minisign", "-S", "-W", "-s", self.secret, "-m", path, "-t", comment], capture_output=True,
                       check=True)


def put(path, text):
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def write_manifest(path, **members):
    document = json.loads(manifest(*KERNELS, bytes_of=KERNELS, revision="trtllm-gen-fmha-0.6.13"))
    document["packs"][0]["sources"] = [{"type": "folder", "location": "kernels"}]
    return put(path, {**document, **members})


PROBLEM = ["--device", "b200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--batch", "1",
           "--max-kv-len", "64"]
RANGES = ["--device", "b200", "--num-q-heads", "8", "--num-kv-heads", "1", "--head-dim", "64", "--batch", "1..2",
          "--max-kv-len", "64", "--page-size", "32"]


def commands_of(path):
    return (["list", "--manifest", path], ["fetch", "--all", "--manifest", path], ["verify", "--manifest", path],
            ["status", "--manifest", path], ["select", *PROBLEM, "--manifest", path],
            ["launch", "--dry-run", *PROBLEM, "--manifest", path], ["prepare", "--manifest", path],
            ["working-set", *RANGES, "--manifest", path],
            ["manifest", "validate", path], ["manifest", "diff", path, path],
            ["manifest", "subset", path, "--arch", "sm_100f", "-o", "out.json"],
            ["manifest", "merge", path, path, "-o", "out.json"], ["manifest", "add", path, "--project", "p.json"],
            ["manifest", "verify", path], ["map", path, *RANGES])


def check_origins(tool, folder):
    """What is wrong with a setting begins with where it was set: variable, line of the file, or flag."""
    signer = Signer(folder, "publisher")
    path = write_manifest(folder / "m.json")
    missing = folder / "missing.json"
    key = {"CUBIST_TRUSTED_KEYS": signer.line}
    for name, value, flag, member in (("CUBIST_TRUSTED_KEYS", "nonsense", "--trusted-key", "trusted_keys"),
                                      ("CUBIST_TRUSTED_KEYS", f"{folder}/none.pub", "--trusted-key", "trusted_keys"),
                                      ("CUBIST_REVOCATIONS", str(missing), "--revocations", "revocations"),
                                      ("CUBIST_KEY_STATEMENTS", str(missing), None, "key_statements")):
        base = {} if member == "trusted_keys" else key
        by_variable = tool("list", "--manifest", path, **{**base, name: value})
        check(by_variable.code == 2 and by_variable.err.startswith(f"cubist: error: {name}: "), f"{name} is named", by_variable)
        check(pathlib.Path(value).name in by_variable.err, "and the value", by_variable)
        config = put(folder / "config.json", json.dumps({member: [value]}, indent=2))
        by_file = tool("list", "--manifest", path, CUBIST_CONFIG=config, **base)
        check(by_file.code == 2 and by_file.err.startswith(f"cubist: error: {config}:2: /{member}: "), "the line is named", by_file)
        if flag:
            by_flag = tool("list", "--manifest", path, flag, value, **base)
            check(by_flag.code == 2 and by_flag.err.startswith(f"cubist: error: {flag}: "), f"{flag} is named", by_flag)
    lonely = tool("list", "--manifest", path, CUBIST_REVOCATIONS=missing)
    check_fails(lonely, 2, f"CUBIST_REVOCATIONS: '{missing}' must be signed by a trusted key, and none is set")
    config = put(folder / "config.json", json.dumps({"manifest_signatures": "refuse", "foreign_store": "refuse"}, indent=2))
    check_fails(tool("list", "--manifest", path, CUBIST_CONFIG=config, **key), 4, f"by {config}:2: /manifest_signatures")
    check_fails(tool("list", "--manifest", path, "--manifest-signatures", "refuse", **key), 4, "by --manifest-signatures")
    check_fails(tool("list", "--manifest", path, CUBIST_MANIFEST_SIGNATURES="refuse", **key), 4, "by CUBIST_MANIFEST_SIGNATURES")
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    check_fails(tool("status", "--store", folder / "open", CUBIST_CONFIG=config), 4, f'foreign_store "refuse" (by {config}:3: /foreign_store)')


def check_signatures(tool, folder):
    signer, stranger = Signer(folder, "signer"), Signer(folder, "stranger")
    path = write_manifest(folder / "m.json")
    trusting = {"CUBIST_TRUSTED_KEYS": signer.line}

    listed = tool("list", "--manifest", path)
    check(listed.code == 0 and not listed.err, "without a key an unsigned manifest is used, without a word", listed)
    check_fails(tool("manifest", "verify", path), 4, "no key is trusted")
    listed = tool("list", "--manifest", path, **trusting)
    check(listed.code == 0 and "is not signed" in listed.err, "with a key it is used with a warning", listed)
    check_fails(tool("list", "--manifest", path, "--manifest-signatures", "refuse", **trusting), 4, "is not signed")
    check_fails(tool("list", "--manifest", path, CUBIST_MANIFEST_SIGNATURES="refuse"), 4, "no key is trusted")
    check(tool("list", "--manifest", path, CUBIST_MANIFEST_SIGNATURES="maybe").code == 2, "a policy that is none")
    check(tool("list", "--manifest", path, "--manifest-signatures", "maybe").code == 2, "a policy that is none")
    for command in (["list", "--manifest", "cubist-decode"], ["manifest", "verify", "cubist-decode"]):
        shipped = tool(*command, "--manifest-signatures", "refuse", **trusting, CUBIST_MANIFESTS=None)
        check(shipped.code == 0 and not shipped.err, "a shipped manifest is as trusted as the program", shipped)

    signer.sign(path, "release 7")
    strict = {**trusting, "CUBIST_MANIFEST_SIGNATURES": "refuse"}
    verified = tool("manifest", "verify", path, "--json", **strict)
    check(verified.code == 0, "verify ends with 0", verified)
    told = verified.json()["manifests"][0]["signed_by"]
    check(told == {"key_id": signer.number, "key": signer.line, "trusted_comment": "release 7"}, "who signed", verified)
    verified = tool("manifest", "verify", path, "--trusted-key", signer.public)
    check(verified.code == 0 and f"signed by {signer.number}, comment 'release 7'" in verified.out, "in words", verified)
    check(tool("list", "--manifest", path, **strict).err == "", "a signed manifest is used without a word")
    doctor = tool("doctor", "--json", **strict, CUBIST_MANIFESTS=folder).json()
    check(doctor["trust"]["keys"] == [signer.number], "doctor shows the keys")
    check(doctor["trust"]["manifest_signatures"] == "refuse", "doctor shows the policy")
    rows = {row["name"]: row for row in doctor["manifests"]}
    check(rows["m"]["signed_by"] == signer.number and rows["cubist-decode"]["shipped"], "doctor shows who vouches")
    check("signed by " + signer.number in tool("doctor", **strict, CUBIST_MANIFESTS=folder).out, "doctor in words")

    good = path.read_text()
    path.write_text(good.replace('"bad"', '"bat"'))
    for policy in ("allow", "warn", "refuse"):
        for command in commands_of(path):
            check_fails(tool(*command, **trusting, CUBIST_MANIFEST_SIGNATURES=policy), 4,
                        f"'{path}' is not what key {signer.number} signed")
    check(not (folder / "out.json").exists() and not (folder / "p.json").exists() and
          not (folder / "store").exists(), "nothing was written")
    path.write_text(good)
    stranger.sign(path)
    check_fails(tool("list", "--manifest", path, **trusting), 4, f"signed by key {stranger.number}", signer.number)
    check(tool("list", "--manifest", path).code == 0, "without a key signatures are not looked at")
    secret = tool("list", "--manifest", path, "--trusted-key", signer.secret.read_text().splitlines()[1])
    check(secret.code == 2 and "secret key" in secret.err, "a secret key in place of the public one", secret)
    check(signer.secret.read_text().splitlines()[1][:40] not in secret.err, "is not shown")

    config = put(folder / "config.json", {"trusted_keys": [str(signer.public)], "manifest_signatures": "refuse"})
    from_file = {"CUBIST_CONFIG": config}
    check_fails(tool("list", "--manifest", path, **from_file), 4, stranger.number)
    signer.sign(path)
    check(tool("list", "--manifest", path, **from_file).code == 0, "the configuration's key")
    check_fails(tool("list", "--manifest", path, "--trusted-key", stranger.line, **from_file), 4, signer.number)
    pathlib.Path(f"{path}.minisig").unlink()
    check_fails(tool("list", "--manifest", path, **from_file), 4, "is not signed")
    check(tool("list", "--manifest", path, CUBIST_MANIFEST_SIGNATURES="allow", **from_file).code == 0, "env beats file")
    bad = put(folder / "bad.json", {"manifest_signatures": "maybe"})
    check_fails(tool("list", "--manifest", path, CUBIST_CONFIG=bad), 2, "bad.json", "/manifest_signatures")


def check_rollback(tool, folder):
    signer = Signer(folder, "signer")
    trusting = {"CUBIST_TRUSTED_KEYS": signer.line}
    path = write_manifest(folder / "m.json", serial=7)
    signer.sign(path)
    old = write_manifest(folder / "old.json", serial=6)
    signer.sign(old)
    check(tool("list", "--manifest", old, **trusting).code == 0, "a fresh store has seen nothing")
    status = tool("status", "--manifest", path, **trusting)
    check(status.code == 0 and "serial" not in status.err, "status notes nothing", status)
    check(tool("list", "--manifest", old, **trusting).code == 0, "so the old one is still the newest")
    check(tool("list", "--manifest", path, **trusting).code == 0, "a newer one is noted")
    state = folder / f"store/state/seen-{os.geteuid()}.json"
    check(json.loads(state.read_text())["serials"] == {"manifest made": 7}, "in the store")
    check(state.stat().st_mode & 0o777 == 0o600, "for the user alone")
    before = state.stat()
    check(tool("list", "--manifest", path, **trusting).code == 0, "again")
    check((state.stat().st_mtime_ns, state.stat().st_ino) == (before.st_mtime_ns, before.st_ino), "writes nothing")
    for command in commands_of(old):
        check_fails(tool(*command, **trusting), 4, "has serial 6, but 7 was seen before", "--accept-older-serial")
    accepted = tool("list", "--manifest", old, "--accept-older-serial", **trusting)
    check(accepted.code == 0 and "accepted" in accepted.err, "on purpose", accepted)
    check_fails(tool("list", "--manifest", old, **trusting), 4, "7 was seen before")
    other = tool("fetch", "--all", "--manifest", old, "--store", folder / "fresh", **trusting)
    check("seen before" not in other.err, "each store has a memory of its own", other)
    expired = write_manifest(folder / "expired.json", serial=8, expires="2001-01-01")
    listed = tool("list", "--manifest", expired)
    check(listed.code == 0 and "expired on 2001-01-01" in listed.err, "expiry is a warning", listed)
    check_expiry(tool, folder, signer)
    twin = write_manifest(folder / "twin.json", serial=7, expires="2999-01-01")
    signer.sign(twin)
    check_fails(tool("list", "--manifest", twin, **trusting), 4, "has serial 7", "not its text", sha256(twin.read_text()))
    check(tool("list", "--manifest", path, **trusting).code == 0, "the one that was seen goes on")
    named = write_manifest(folder / "made.json", serial=7)
    signer.sign(named)
    check("another name" not in tool("list", "--manifest", "made", **trusting, CUBIST_MANIFESTS=folder).err, "its name")
    check("signed manifest 'made' under another name" in
          tool("list", "--manifest", "m", **trusting, CUBIST_MANIFESTS=folder).err, "another name is told")
    state.write_text("{}")
    check_fails(tool("list", "--manifest", path, **trusting), 4, str(state), "remove it to begin anew")
    state.unlink()
    check(tool("list", "--manifest", path, **trusting).code == 0, "what the error says works")


def check_expiry(tool, folder, signer):
    """Every command that reads a manifest warns once, and goes on as without, whatever the policy."""
    place = folder / "expiry"
    place.mkdir()
    plain, over = (write_manifest(place / f"{name}.json", serial=8, **more)
                   for name, more in (("plain", {}), ("over", {"expires": "2001-01-01"})))
    signer.sign(over)
    for policy in ({}, {"CUBIST_TRUSTED_KEYS": signer.line, "CUBIST_MANIFEST_SIGNATURES": "refuse", "CUBIST_STORE": place / "s"}):
        for command in commands_of(over):
            run = tool(*command, at=place, **policy)
            usual = tool(*[plain if part == over else part for part in command], at=place)
            check(run.err.count("expired on 2001-01-01") == 1, f"{command[:2]} warns once", run)
            check(run.code == usual.code or policy, f"{command[:2]} goes on: {usual.code}", run)
            (place / "p.json").unlink(missing_ok=True)


def check_layers(tool, folder):
    """What a store below has noted counts where a fresh one lies above it."""
    signer = Signer(folder, "signer")
    trusting = {"CUBIST_TRUSTED_KEYS": signer.line}
    path = write_manifest(folder / "m.json", serial=7)
    old = write_manifest(folder / "old.json", serial=6)
    for one in (path, old):
        signer.sign(one)
    check(tool("list", "--manifest", path, "--store", folder / "base", **trusting).code == 0, "the base sees 7")
    state = folder / f"base/state/seen-{os.geteuid()}.json"
    before = state.read_text()
    above = {**trusting, "CUBIST_STORE": folder / "top", "CUBIST_STORE_BASE": folder / "base"}
    for command in commands_of(old):
        check_fails(tool(*command, **above), 4, "has serial 6, but 7 was seen before")
    check(tool("list", "--manifest", path, **above).code == 0 and not (folder / "top/state").exists(), "which is not noted twice")
    newer = write_manifest(folder / "newer.json", serial=8)
    signer.sign(newer)
    check(tool("list", "--manifest", newer, **above).code == 0, "a newer one")
    check((folder / "top/state").exists() and state.read_text() == before, "is noted above, and the base is not written")
    state.write_text("{}")
    check_fails(tool("list", "--manifest", newer, **above), 4, str(state), "remove it")
    state.unlink()
    state.symlink_to(folder / "elsewhere")
    check_fails(tool("list", "--manifest", newer, **above), 4, str(state))


def check_rotation(tool, folder):
    first, second = Signer(folder, "first"), Signer(folder, "second")
    statement = put(folder / "keys-2.json", {"schema": "cubist.keys", "schema_version": 1, "serial": 2,
                                             "add": [second.line], "retire": [first.line]})
    first.sign(statement)
    path = write_manifest(folder / "m.json")
    second.sign(path)
    trusting = {"CUBIST_TRUSTED_KEYS": first.line, "CUBIST_MANIFEST_SIGNATURES": "refuse"}
    check_fails(tool("list", "--manifest", path, **trusting), 4, second.number)
    follows = {**trusting, "CUBIST_KEY_STATEMENTS": statement}
    for run in ("a statement adds a key", "and does so again, its signer retired"):
        check(tool("list", "--manifest", path, **follows).code == 0, run)
    first.sign(path)
    check_fails(tool("list", "--manifest", path, **follows), 4, f"'{path}' is signed by key {first.number}")
    state = folder / f"store/state/seen-{os.geteuid()}.json"
    check_fails(tool("list", "--manifest", path, **trusting), 4, f"retired by a key statement: {first.number}", str(state))
    check(f"retired by a key statement: {first.number}" in tool("doctor", **trusting).out, "doctor says so, too")
    check("are not checked" not in tool("doctor", **trusting).out, "and not that nothing is checked")
    statement.write_text(statement.read_text().replace("retire", "retird"))
    check_fails(tool("list", "--manifest", path, **follows), 2, "keys-2.json")


def check_revocations(tool, folder):
    signer = Signer(folder, "signer")
    (folder / "kernels").mkdir()
    for name, data in KERNELS.items():
        (folder / f"kernels/{name}.cubin").write_bytes(data)
    path = write_manifest(folder / "m.json")
    bad, good = sha256(KERNELS["bad"]), sha256(KERNELS["good"])
    revoked = put(folder / "revoked.json", {
        "schema": "cubist.revocations", "schema_version": 1, "serial": 1,
        "entries": [{"sha256": bad, "reason": "wrong results", "replacement": good}]})
    signer.sign(revoked)
    check(tool("fetch", "--all", "--manifest", path).code == 0, "both are in the store")
    trusting = {"CUBIST_TRUSTED_KEYS": signer.line, "CUBIST_MANIFEST_SIGNATURES": "allow"}
    barring = {**trusting, "CUBIST_REVOCATIONS": revoked}

    check_fails(tool("verify", **barring), 4, "1 revoked kernels are in the store")
    verified = tool("verify", "--manifest", path, "--json", **barring)
    check([one["sha256"] for one in verified.json()["revoked"]] == [bad], "verify names it", verified)
    check("wrong results; use " + good in verified.json()["revoked"][0]["why"], "with reason and replacement")
    check_fails(tool("fetch", "--manifest", path, "--kernel", "bad", **barring), 4, "kernel 'bad'", "wrong results", good)
    check_fails(tool("fetch", "--manifest", path, "--sha256", bad, **barring), 4, "wrong results")
    check(tool("fetch", "--manifest", path, "--kernel", "good", **barring).code == 0, "the other is fetched")
    by_digest = tool("fetch", "--manifest", path, "--kernel", good, "--json", **barring)
    check([one["name"] for one in by_digest.json()["files"]] == ["good"], "--kernel takes a digest, too", by_digest)
    fetched = tool("fetch", "--manifest", path, "--all", "--json", "--store", folder / "fresh", **barring)
    check([one["name"] for one in fetched.json()["files"]] == ["good"], "fetch --all passes over it", fetched)
    check("not fetched: kernel 'bad'" in fetched.err, "and says so", fetched)
    check(tool("verify", "--manifest", path, "--store", folder / "fresh", **barring).code == 0,
          "where it is not, none is missed")
    check(tool("status", "--manifest", path, "--offline", "--store", folder / "fresh", **barring).code == 0,
          "nor does status")
    status = tool("status", "--manifest", path, **barring)
    check("1 more are revoked" in status.out, "but says so", status)
    working_set = put(folder / "set.json", {
        "schema": "cubist.working_set", "schema_version": 1, "manifests": [str(path)],
        "kernels": [{"name": name, "pack": "pack", "sha256": sha256(data), "size": len(data)} for name, data in KERNELS.items()]})
    of_set = tool("verify", "--working-set", working_set, "--store", folder / "fresh", **barring)
    check(of_set.code == 0 and "1 kernels of the working set are revoked" in of_set.err, "a set that misses it is told", of_set)
    of_set = tool("fetch", "--working-set", working_set, "--store", folder / "fresh", **barring)
    check("not fetched: kernel 'bad'" in of_set.err, "by fetch, too", of_set)
    dry = tool("gc", "--revoked", "--dry-run", "--json", **barring).json()
    check(len(dry["removed"]) == 1 and bad in dry["removed"][0] and dry["entries_before"] == 2, "gc --revoked names the entry")
    other = folder / "other"
    check(tool("fetch", "--all", "--manifest", path, "--store", other).code == 0, "another store")
    cleaned = tool("gc", "--revoked", "--pin", path, "--store", other, **barring)
    check(cleaned.code == 0 and "1 of 2 entries removed" in cleaned.out, "and removes it, pinned or not", cleaned)
    check(tool("verify", "--store", other, **barring).code == 0, "after which verify is content")
    check_fails(tool("gc", "--store", other), 2, "--max-size", "--revoked")
    check_fails(tool("gc", "--revoked", "--store", other), 2, "no revocation list is configured")
    bundle, kept = folder / "both.zip", folder / "bundled"
    licence = put(folder / "licence.txt", "none\n")
    check(tool("bundle", "create", "--manifest", path, "--all", "--license", licence, "-o", bundle).code == 0, "a bundle of both")
    check(tool("bundle", "install", bundle, "--store", kept).code == 0, "installed before it was revoked")
    held = tool("gc", "--revoked", "--store", kept, "--json", **barring)
    check(held.code == 0 and len(held.json()["bundles_with_revoked"]) == 1, "gc names the bundle that holds it", held)
    check_fails(tool("verify", "--store", kept, **barring), 4, "1 revoked kernels are in the store")
    by_flag = tool("verify", "--revocations", revoked, "--trusted-key", signer.public)
    check_fails(by_flag, 4, "revoked")
    config = put(folder / "config.json", {"trusted_keys": [signer.line], "revocations": [str(revoked)]})
    check_fails(tool("verify", CUBIST_CONFIG=config), 4, "revoked")
    doctor = tool("doctor", "--json", **barring).json()["trust"]
    check(doctor["revoked_kernels"] == 1 and doctor["revocations"][0]["serial"] == 1, "doctor shows the lists")

    kept = [(one, one.read_text()) for one in (revoked, pathlib.Path(f"{revoked}.minisig"))]
    put(revoked, {"schema": "cubist.revocations", "schema_version": 1, "serial": 1, "entries": []})
    signer.sign(revoked)
    check_fails(tool("verify", **barring), 4, "has serial 1", "not its text")
    put(revoked, {"schema": "cubist.revocations", "schema_version": 1, "serial": 1, "name": "other", "entries": []})
    signer.sign(revoked)
    for run in ("another list in its place is told", "and told again"):
        check("is called 'other'; the one that was there before, ''" in tool("verify", **barring).err, run)
    for one, text in kept:
        one.write_text(text)

    plain = tool("verify", CUBIST_REVOCATIONS=revoked)
    check_fails(plain, 2, "must be signed by a trusted key", "trusted_keys")
    for name, change in (("missing", lambda: revoked.unlink()),
                         ("unsigned", lambda: pathlib.Path(f"{revoked}.minisig").unlink()),
                         ("altered", lambda: revoked.write_text(revoked.read_text().replace(bad, good)))):
        text, signature = revoked.read_text(), pathlib.Path(f"{revoked}.minisig").read_text()
        change()
        for command in (["list", "--manifest", path], ["select", *PROBLEM, "--manifest", path], ["verify"],
                        ["launch", "--dry-run", *PROBLEM, "--manifest", path]):
            refused = tool(*command, **barring)
            check(refused.code in (2, 4) and "revoked.json" in refused.err, f"a list that is {name} is an error", refused)
        revoked.write_text(text)
        pathlib.Path(f"{revoked}.minisig").write_text(signature)


def check_links(tool, folder):
    """Below a store's root no link is followed, to a manifest neither."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    write_manifest(elsewhere / "planted.json")
    manifests = folder / "store/manifests"
    manifests.mkdir(parents=True)
    (manifests / "planted.json").symlink_to(elsewhere / "planted.json")
    os.mkfifo(manifests / "fifo.json")
    write_manifest(manifests / "made.json")
    check(tool("list", "--manifest", "made").code == 0, "a file is found")
    for name in ("planted", "fifo"):
        check_fails(tool("list", "--manifest", name), 2, f"no shipped manifest is called '{name}'")
    (folder / "store/manifests").rename(folder / "moved")
    (folder / "store/manifests").symlink_to(folder / "moved")
    check_fails(tool("list", "--manifest", "made"), 2, "no shipped manifest is called 'made'")


def check_selection(tool, folder):
    """With a shipped manifest: what is chosen is revoked, so that another is, or none."""
    signer = Signer(folder, "signer")
    problem = ["--manifest", "cubist-decode", "--device", "h200", "--num-q-heads", "32", "--num-kv-heads", "8",
               "--head-dim", "128", "--batch", "8", "--max-kv-len", "4096", "--page-size", "32"]
    chosen = tool("select", *problem, "--json")
    check(chosen.code == 0, "a kernel is chosen", chosen)
    first = chosen.json()["kernel"]
    hashes = {row["name"]: row["sha256"] for row in tool("list", "--manifest", "cubist-decode", "--json").json()["kernels"]}
    revoked = folder / "revoked.json"

    def revoke(digests, serial):
        put(revoked, {"schema": "cubist.revocations", "schema_version": 1, "serial": serial,
                      "entries": [{"sha256": digest, "reason": "wrong at 128"} for digest in digests]})
        signer.sign(revoked)
    barring = {"CUBIST_TRUSTED_KEYS": signer.line, "CUBIST_REVOCATIONS": revoked}
    revoke([hashes[first]], 1)
    again = tool("select", *problem, "--json", **barring)
    check(again.code != 0 or again.json()["kernel"] != first, "the revoked one is not chosen", again)
    explained = tool("select", *problem, "--explain", **barring)
    check(f"{first}: revoked by '{revoked}' (serial 1): wrong at 128" in explained.out + explained.err,
          "explain shows it with the reason", explained)
    rules = put(folder / "rules.json", {"schema": "cubist.overrides", "schema_version": 1, "rules": [
        {"name": "force", "force": {"kernel": first}}]})
    check(tool("select", *problem, "--overrides", rules).code == 0, "a rule can force it while it is not revoked")
    check_fails(tool("select", *problem, "--overrides", rules, **barring), 3, "force")
    everything = tool("working-set", "--manifest", "cubist-decode", "--device", "h200", "--num-q-heads", "32",
                      "--num-kv-heads", "8", "--head-dim", "128", "--batch", "1..8", "--max-kv-len", "..4096",
                      "--page-size", "32", "--json", **barring)
    check(hashes[first] not in everything.out, "the working set leaves it out", everything)
    check("1 kernels of these manifests are revoked and in no set" in everything.err, "and says so", everything)
    revoke(sorted(set(hashes.values())), 2)
    for command in (["select"], ["select", "--json"], ["launch", "--dry-run"], ["launch", "--dry-run", "--json"]):
        check_fails(tool(*command, *problem, **barring), 3, "would serve, but is barred: revoked by",
                    f"'{revoked}' (serial 2): wrong at 128")
    line = json.dumps({"sm": 90, "num_sms": 132, "num_q_heads": 32, "num_kv_heads": 8, "batch": 8, "max_kv_len": 4096})
    put(folder / "problems.jsonl", line + "\n")
    answer = tool("launch", "--dry-run", "--jsonl", folder / "problems.jsonl", **barring)
    check("revoked by" in answer.json()["error"]["message"], "line by line, too", answer)


def main(program):
    for part in (check_origins, check_signatures, check_rollback, check_layers, check_rotation, check_revocations, check_links,
                 check_selection):
        with tempfile.TemporaryDirectory(prefix="cubist-test-") as scratch:
            folder = pathlib.Path(scratch)
            part(Tool(program, folder), folder)
            print(part.__name__)


main(sys.argv[1])
