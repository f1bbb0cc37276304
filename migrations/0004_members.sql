-- SPDX-License-Identifier: Apache-2.0
-- Nodes that are kept in step: who they are, and commits that came from others.

-- kept: what the commit holds can be worked out from the indexes and bodies that are there.
-- Parents come before their children in the order of seq.
ALTER TABLE commit_log ADD COLUMN kept INTEGER NOT NULL DEFAULT 1 CHECK (kept IN (0, 1));
DROP TRIGGER commit_log_no_update;
CREATE TRIGGER commit_log_no_update BEFORE UPDATE OF
    seq, id, rev, schema_version, fp, node, author, summary, at_ms, confirm_until_ms
    ON commit_log
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
-- Until now there was one line, so that the full index before a commit is that of the greatest seq.
-- Its rows are gone when it was not needed any more; the head's may have none because it is empty.
UPDATE commit_log SET kept = 0 FROM (
    SELECT c.seq AS at, (SELECT max(f.seq) FROM commit_log f WHERE f.has_full AND f.seq <= c.seq)
    AS base FROM commit_log c) b
WHERE b.at = commit_log.seq AND (
    EXISTS (
        SELECT 1 FROM commit_entry e WHERE e.seq > b.base AND e.seq <= b.at
        AND e.objhash IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM body d WHERE d.objhash = e.objhash AND d.kind = e.kind))
    OR (NOT EXISTS (SELECT 1 FROM commit_full x WHERE x.seq = b.base)
        AND b.base < (SELECT max(f.seq) FROM commit_log f WHERE f.has_full)));

-- Ends of branches that the head left or never was on: no commit has one as its first parent.
-- at_ms: since when; the content is kept for a time.
CREATE TABLE discarded (
    seq INTEGER PRIMARY KEY REFERENCES commit_log (seq),
    at_ms INTEGER NOT NULL
) STRICT;

-- 32 random hex digits: this node.
ALTER TABLE meta ADD COLUMN node_id TEXT NOT NULL
    DEFAULT '00000000000000000000000000000000' CHECK (length(node_id) = 32);
UPDATE meta SET node_id = lower(hex(randomblob(16)));

-- The nodes of the cluster, this one too. record: canonical JSON, what the node says of itself.
-- seq, gone: as in it; gone = 1: a tombstone. peer_key: what is presented to that node, sealed;
-- NULL: not known.
CREATE TABLE member (
    id TEXT PRIMARY KEY CHECK (length(id) = 32),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    gone INTEGER NOT NULL CHECK (gone IN (0, 1)),
    record TEXT NOT NULL,
    peer_key BLOB,
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 4;
