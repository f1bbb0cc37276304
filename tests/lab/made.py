# SPDX-License-Identifier: Apache-2.0
"""Revisions that no node made."""
from peer import commit_id, fingerprint, objhash

OTHER = "ab" * 32


class Made:
    """Revisions as another node could have made them, on top of what a node stands at."""

    def __init__(self, caller):
        whole = caller.read()
        self.head = whole["head"]
        self.commits = {c["commit"]["id"]: c["commit"] for c in whole["commits"]}
        self.index = {(k, i): h for k, i, h in whole["index"]}
        bodies = {(k, i, objhash(o)): o for k, i, o in whole["objects"]}
        self.objects = {at: bodies[at + (h,)] for at, h in self.index.items()}

    @property
    def commit(self):
        return self.commits[self.head]

    def id(self, kind, name):
        return next(i for (k, i), o in self.objects.items() if k == kind and o["name"] == name)

    def row(self, kind, named, **fields):
        """An object with other fields."""
        i = self.id(kind, named)
        return [kind, i, {**self.objects[kind, i], **fields}]

    def seal(self, commit):
        return {**commit, "id": commit_id(commit)}

    def child(self, *rows, removed=(), parent=None, **fields):
        """A document with one commit more. rows: changed objects; fields: of the commit, None to
        leave one out."""
        parent = parent or self.commit
        entries = [[k, i, objhash(o)] for k, i, o in rows] + [[k, i, None] for k, i in removed]
        index = dict(self.index)
        for k, i, h in entries:
            index.pop((k, i), None)
            if h:
                index[k, i] = h
        commit = {**self.commit, "rev": parent["rev"] + 1, "parents": [parent["id"]],
                  "author": "admin eve", "node": "n9", "summary": "made by a test",
                  "at": parent["at"] + 1, **fields}
        commit.setdefault("schema_version", 2)
        if "fp" not in fields:
            commit["fp"] = fingerprint(
                commit["schema_version"] or 0, [k + (h,) for k, h in index.items()])
        commit = self.seal({k: v for k, v in commit.items() if v is not None})
        return {"head": commit["id"], "commits": [{"commit": commit, "entries": entries}],
                "objects": list(rows)}

    def whole(self, document):
        """The same with an index."""
        index = dict(self.index)
        for c in document["commits"]:
            index.update({(k, i): h for k, i, h in c["entries"]})
        return {**document, "index": [[k, i, h] for (k, i), h in sorted(index.items()) if h]}

    def changed(self, **fields):
        return self.child(self.row("pool", "p1", balance="leastconn"), **fields)

    def recommitted(self, **fields):
        """The fields of the commit, and an id that follows from them."""
        document = self.changed()
        commit = self.seal({**document["commits"][0]["commit"], **fields})
        return {**document, "head": commit["id"],
                "commits": [{**document["commits"][0], "commit": commit}]}

    def with_(self, key, value):
        return {**self.changed(), key: value}

    def entries(self, *rows):
        commit = self.changed()["commits"][0]["commit"]
        return self.with_("commits", [{"commit": commit, "entries": list(rows)}])
