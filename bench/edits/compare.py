"""Makes the edits of internal/base/edit/testdata/edits.txt with the apply_patch of Codex and the coders of aider, and counts what comes out.

python -m venv venv && venv/bin/pip install aider-chat==0.86.2
npm install --prefix codex @openai/codex@0.169.0
venv/bin/python compare.py PATH/TO/codex ../../internal/edit/testdata/edits.txt [--show]

CODEX is the program itself, not its launcher in JavaScript. No model and no network is used. An edit in a form that a program does not
take is written in one that it takes, with the same lines; where that cannot be done, it does not count. --show prints what was wrong.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

MARKS = {"␍": b"\r", "␂": b"\xef\xbb\xbf", "␖": b"\xe9", "␠": b" "}


def read_corpus(path):
    """Returns the cases: name, form, path and their sections as bytes."""
    texts, cases, into = {}, [], None
    for line in open(path, encoding="utf-8", newline="\n"):
        line = line[:-1]
        if not line.startswith("§ "):
            if into is not None:
                ends = b"" if line.endswith("␄") else b"\n"
                into[0][into[1]] += b"".join(MARKS.get(c, c.encode()) for c in line.removesuffix("␄")) + ends
            continue
        key, _, value = line[2:].partition(": ")
        into = None
        if key == "text":
            texts[value], into = b"", (texts, value)
        elif key == "case":
            cases.append({"name": value, "file": b"", "edit": b"", "old": b"", "new": b"", "want": b""})
        elif key == "file":
            case = cases[-1]
            case["path"], _, shared = value.partition(" = ")
            case["file"], into = texts.get(shared, b""), (case, "file")
        elif key in ("form", "refused"):
            cases[-1][key] = value
        elif key in ("old", "new", "edit", "want"):
            into = (cases[-1], key)
    return cases


def common(old, new):
    """Returns how many lines at the beginning and at the end are the same."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def hunk_of(old, new):
    head, tail = common(old, new)
    return ([" " + l for l in old[:head]] + ["-" + l for l in old[head:len(old) - tail]]
            + ["+" + l for l in new[head:len(new) - tail]] + [" " + l for l in old[len(old) - tail:]])


def hunks_of(case):
    """Returns the edit as hunks, each a list of lines with their marks; None: it is not only lines."""
    form, edit = case["form"], case["edit"].decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if form.startswith("replace"):
        old, new = case["old"], case["new"]
        if form != "replace" or not old.endswith(b"\n") or new and not new.endswith(b"\n"):
            return None
        lines = lambda b: b.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")[:-1]
        return [hunk_of(lines(old), lines(new))]
    if form == "blocks":
        found = re.findall(r"^<{7} SEARCH\n(.*?)^={7}\n(.*?)^>{7} REPLACE$", edit, re.M | re.S)
        if not found or len(found) != edit.count("SEARCH") or any("=======\n" in new for _, new in found):
            return None
        return [hunk_of(old.split("\n")[:-1], new.split("\n")[:-1]) for old, new in found]
    hunks = []
    for line in edit.split("\n")[:-1]:
        if line.startswith("@@"):
            hunks.append([])
        elif hunks and (line == "" or line[0] in " -+"):
            hunks[-1].append(line)
        elif hunks:
            return None
    return hunks or None


def needs_number(case, hunks):
    """Reports whether only its numbers say where an edit belongs: a patch has none."""
    file = case["file"].decode("utf-8", "surrogateescape").split("\n")
    for h in hunks:
        old = [l[1:] for l in h if l[:1] != "+"]
        places = sum(file[i:i + len(old)] == old for i in range(len(file)))
        if not old or places > 1:
            return re.search(rb"^@@+ -\d", case["edit"], re.M) is not None
    return False


def run_codex(case, codex, folder):
    """Returns the file afterwards, or None if the edit was refused; "skip" if it cannot be written as a patch."""
    patch = case["edit"]
    if case["form"] != "patch":
        hunks = hunks_of(case)
        if hunks is None or needs_number(case, hunks):
            return "skip"
        body = "".join("@@\n" + "".join(l + "\n" for l in h) for h in hunks)
        patch = f"*** Begin Patch\n*** Update File: {case['path']}\n{body}*** End Patch\n".encode("utf-8", "surrogateescape")
    done = subprocess.run([codex, "--codex-run-as-apply-patch", patch], cwd=folder, capture_output=True)
    return None if done.returncode else read(folder, case)


def read(folder, case):
    with open(os.path.join(folder, case["path"]), "rb") as f:
        return f.read()


def run_aider(case, _, folder):
    from aider.coders.editblock_coder import EditBlockCoder
    from aider.coders.patch_coder import PatchCoder
    from aider.coders.udiff_coder import UnifiedDiffCoder
    from aider.io import InputOutput

    form, path = case["form"], case["path"]
    edit = case["edit"].decode("utf-8", "surrogateescape")
    kind = {"diff": UnifiedDiffCoder, "patch": PatchCoder}.get(form, EditBlockCoder)
    if form.startswith("replace"):
        old, new = case["old"], case["new"]
        if form != "replace" or not old.endswith(b"\n") or new and not new.endswith(b"\n"):
            return "skip"
        lines = lambda b: b.decode("utf-8", "surrogateescape")
        edit = f"{path}\n```\n<<<<<<< SEARCH\n{lines(old)}=======\n{lines(new)}>>>>>>> REPLACE\n```\n"
    elif form == "diff":
        if "+++ " not in edit:
            edit = f"--- {path}\n+++ {path}\n" + edit
        if "```diff" not in edit:
            edit = "```diff\n" + edit + "```\n"
    coder = object.__new__(kind)
    coder.io = InputOutput(pretty=False, yes=True, fancy_input=False)
    coder.io.tool_error = coder.io.tool_warning = coder.io.tool_output = lambda *a, **k: None
    coder.root, coder.fence, coder.shell_commands = folder, ("```", "```"), []
    coder.abs_root_path_cache = {}
    coder.abs_fnames = {os.path.join(folder, path)}
    coder.abs_read_only_fnames = set()
    coder.partial_response_content = edit
    coder.get_inchat_relative_files = lambda: [path]
    try:
        edits = coder.get_edits()
        if not edits:
            return None
        if kind is EditBlockCoder:
            edits = coder.apply_edits_dry_run(edits)
        coder.apply_edits(edits)
    except Exception:
        return None if read(folder, case) == case["file"] else "in part"
    return read(folder, case)


def judge(case, run, codex):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, case["path"]), "wb") as f:
            f.write(case["file"])
        if any(mark in case["edit"] for mark in (b":start_line:", b"------- SEARCH")):
            return "not expressible"  # the forms of other programs
        got = run(case, codex, folder)
        if got == "skip":
            return "not expressible"
        if got == "in part":
            return "in part, and says so"
        if "refused" in case:
            return "right" if got is None or got == case["file"] else "wrong: it has to be refused"
        if got is None:
            return "refused"
        return "right" if got == case["want"] else "wrong: another result"


def main():
    codex, corpus = sys.argv[1:3]
    cases = read_corpus(corpus)
    for name, run in (("codex", run_codex), ("aider", run_aider)):
        for form in ("patch", "diff", "blocks", "replace"):
            own = [c for c in cases if c["form"].split()[0] == form]
            counts = Counter()
            for case in own:
                verdict = judge(case, run, codex)
                counts[verdict] += 1
                if "--show" in sys.argv and verdict not in ("right", "not expressible"):
                    print(f"  {name} {form}: {verdict}: {case['name']}")
            print(name, form, len(own), dict(counts))


main()
