#!/usr/bin/env python3
"""The downloader of a published flashinfer-python wheel, driven as `flashinfer download-cubin` drives it.

  flashinfer_download.py WHEEL REPOSITORY_URL CUBIN_DIR LIST THREADS     LIST: lines "sha256 path"

Its own modules flashinfer.artifacts and flashinfer.jit.cubin_loader are read out of the wheel and
run unchanged: download_artifacts(), with its thread pool, session, locks, renames and the check of all
digests at the end. Given here: what they import of the rest of the package (a logger, the folder), and
the list of files in place of the one it would read from its own server. Needs requests, filelock, tqdm.
"""
import logging
import os
import pathlib
import sys
import tempfile
import types
import zipfile


def add_module(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def main():
    wheel, repository, folder, listing, threads = sys.argv[1:]
    os.environ["FLASHINFER_CUBINS_REPOSITORY"] = repository
    os.environ["FLASHINFER_CUBIN_DOWNLOAD_THREADS"] = threads
    os.environ["FLASHINFER_LOGGING_LEVEL"] = "WARNING"
    with tempfile.TemporaryDirectory() as unpacked:
        with zipfile.ZipFile(wheel) as archive:
            for name in ("flashinfer/artifacts.py", "flashinfer/jit/cubin_loader.py"):
                archive.extract(name, unpacked)
        add_module("flashinfer", __path__=[unpacked + "/flashinfer"])
        add_module("flashinfer.jit", __path__=[unpacked + "/flashinfer/jit"])
        logger = logging.getLogger("flashinfer.jit")
        logger.setLevel(logging.WARNING)
        add_module("flashinfer.jit.core", logger=logger)
        add_module("flashinfer.jit.env", FLASHINFER_CUBIN_DIR=pathlib.Path(folder))
        from flashinfer import artifacts
        files = [tuple(line.split()[::-1]) for line in open(listing, encoding="utf-8")]
        artifacts.get_subdir_file_list = lambda: iter(files)
        artifacts.download_artifacts()


main()
