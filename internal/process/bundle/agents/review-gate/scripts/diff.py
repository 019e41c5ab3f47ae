"""Says what has changed in the repository that the run was started in: since the commit that the prompt names; else since the last commit, if something is
not committed; else since the branch left the main one; else in the last commit. Files that git does not know yet are new files."""

import json
import os
import subprocess
import sys

LARGEST = 200_000  # characters of a diff that reviewers are shown
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# The first two keep git from running programs which files of the project may name.
SETTINGS = ("safe.bareRepository=explicit", "core.fsmonitor=false", "core.quotePath=false", "color.ui=false")
MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def state():
    path = os.environ.get("GRAPH_STATE_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


def git(*words, fine=(0,)):
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    command = ["git", "--no-pager", *settings, *words]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in fine:
        return None
    return done.stdout.decode("utf-8", "replace")


def commit(name):
    found = git("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}")
    return found and found.strip()


def base(wanted):
    """The commit to compare with, and what to call it."""
    if wanted:
        found = commit(wanted)
        if not found:
            sys.exit(f"git knows no commit '{wanted}': the prompt names what to compare with, such as main, or is empty.")
        return (git("merge-base", found, "HEAD") or found).strip(), wanted
    head = commit("HEAD")
    if not head:
        return EMPTY_TREE, "the beginning"
    if git("status", "--porcelain", "--", "."):
        return head, "the last commit"
    for name in MAIN:
        fork = (git("merge-base", name, "HEAD") or "").strip()
        if fork and fork != head:
            return fork, f"where the branch left {name}"
    return commit("HEAD~1") or EMPTY_TREE, "the commit before the last"


def difference(since):
    """The names of the files that differ, and the diff."""
    plain = ("--no-ext-diff", "--no-textconv")
    new = [name for name in (git("ls-files", "-z", "--others", "--exclude-standard") or "").split("\0") if name]
    known = [name for name in (git("diff", "--relative", "-z", "--name-only", "-M", since, "--", ".") or "").split("\0") if name]
    texts = [git("diff", *plain, "--relative", "-M", since, "--", ".") or ""]
    for name in new:
        texts.append(git("diff", *plain, "--no-index", "--", "/dev/null", name, fine=(0, 1)) or "")
    return sorted(known + new), "".join(texts)


def main():
    os.chdir(os.environ["RADDLE_WORKSPACE"])
    if git("rev-parse", "--is-inside-work-tree") is None:
        sys.exit("This is no git repository: start the run in the repository whose change is to be reviewed.")
    since, name = base(state()["initial_prompt"].strip())
    files, diff = difference(since)
    summary = f"The change since {name} ({since[:12]}) touches {len(files)} files: {', '.join(files)}."
    if not files:
        report = f"Nothing has changed since {name} ({since[:12]})."
        print(json.dumps({"report": report, "remark": "accept, for there is nothing to decide", "_next": "accepted"}))
        return
    if len(diff) > LARGEST:
        diff = diff[:LARGEST] + f"\n[{len(diff) - LARGEST} characters are left out: read the other files with the tools]\n"
    print(json.dumps({"summary": summary, "diff": diff}))


main()
