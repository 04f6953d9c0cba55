"""What the programs that kill share: TOOL SOURCE_DIR [KILLS [SEED]], rounds until so many were killed, figures."""
import pathlib
import sys
import time


def run(make, kills):
    """make(TOOL, SOURCE_DIR, SEED): an object with measure(), one_round(), all_kills(), report(seconds) and end(keep).
    A violation is an AssertionError; it ends the run with 1, and end(True) keeps what it was found in."""
    tool, source_dir = sys.argv[1:3]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else kills
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    matrix = make(tool, source_dir, seed)
    begun, keep = time.monotonic(), True
    try:
        matrix.measure()
        while matrix.all_kills() < wanted:
            matrix.one_round()
        matrix.report(time.monotonic() - begun)
        keep = False
    except AssertionError as problem:
        print(f"{pathlib.Path(sys.argv[0]).stem}: {problem} (seed {seed})", file=sys.stderr)
        return 1
    finally:
        matrix.end(keep)
    return 0
