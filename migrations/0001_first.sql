-- SPDX-License-Identifier: Apache-2.0
-- Two containers of the same shape: what all nodes must have (shared_*) and what only this
-- node has (local_*). Objects have no copy of their body: objhash leads to it.

PRAGMA application_id = 1280004948; -- "LKST"

-- Content by its hash. form: 1 = deflated, 2 = sealed, 3 = deflated and then sealed.
CREATE TABLE body (
    objhash BLOB NOT NULL CHECK (length(objhash) = 32),
    kind TEXT NOT NULL,
    form INTEGER NOT NULL CHECK (form BETWEEN 0 AND 3),
    data BLOB NOT NULL,
    PRIMARY KEY (objhash, kind)
) STRICT;

CREATE TABLE shared_object (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    objhash BLOB NOT NULL CHECK (length(objhash) = 32),
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE shared_ref (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    pointer TEXT NOT NULL,
    to_kind TEXT NOT NULL,
    to_id TEXT NOT NULL,
    PRIMARY KEY (kind, id, pointer),
    FOREIGN KEY (kind, id) REFERENCES shared_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (to_kind, to_id) REFERENCES shared_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_ref_to ON shared_ref (to_kind, to_id);

CREATE TABLE shared_unique (
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (kind, field, value),
    UNIQUE (kind, id, field),
    FOREIGN KEY (kind, id) REFERENCES shared_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

CREATE TABLE local_object (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    objhash BLOB NOT NULL CHECK (length(objhash) = 32),
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- References of local objects to each other. To shared objects none has a foreign key, so that
-- a delete that comes from another node is never blocked.
CREATE TABLE local_ref (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    pointer TEXT NOT NULL,
    to_kind TEXT NOT NULL,
    to_id TEXT NOT NULL,
    PRIMARY KEY (kind, id, pointer),
    FOREIGN KEY (kind, id) REFERENCES local_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (to_kind, to_id) REFERENCES local_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
CREATE INDEX local_ref_to ON local_ref (to_kind, to_id);

CREATE TABLE local_unique (
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (kind, field, value),
    UNIQUE (kind, id, field),
    FOREIGN KEY (kind, id) REFERENCES local_object (kind, id)
        DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

-- History of the shared container: a hash chain, never changed. seq is this node's own order of
-- arrival and stands for the long id in the other tables. has_full: it was stored with a
-- full index (which leaves again when no kept commit needs it).
CREATE TABLE commit_log (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
    rev INTEGER NOT NULL CHECK (rev >= 1),
    schema_version INTEGER NOT NULL CHECK (schema_version >= 1),
    fp BLOB NOT NULL CHECK (length(fp) = 32),
    node TEXT NOT NULL,
    author TEXT NOT NULL,
    summary TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    confirm_until_ms INTEGER NOT NULL,
    has_full INTEGER NOT NULL CHECK (has_full IN (0, 1))
) STRICT;
CREATE INDEX commit_log_rev ON commit_log (rev);

CREATE TABLE commit_parent (
    seq INTEGER NOT NULL REFERENCES commit_log (seq),
    position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 15),
    parent_seq INTEGER NOT NULL REFERENCES commit_log (seq),
    PRIMARY KEY (seq, position)
) STRICT, WITHOUT ROWID;

-- What a commit changed against its first parent; objhash NULL = deleted.
CREATE TABLE commit_entry (
    seq INTEGER NOT NULL REFERENCES commit_log (seq),
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    objhash BLOB CHECK (length(objhash) = 32),
    PRIMARY KEY (seq, kind, id)
) STRICT, WITHOUT ROWID;

-- Everything a commit holds.
CREATE TABLE commit_full (
    seq INTEGER NOT NULL REFERENCES commit_log (seq),
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    objhash BLOB NOT NULL CHECK (length(objhash) = 32),
    PRIMARY KEY (seq, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER commit_log_no_update BEFORE UPDATE ON commit_log
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_log_no_delete BEFORE DELETE ON commit_log
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_parent_no_update BEFORE UPDATE ON commit_parent
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_parent_no_delete BEFORE DELETE ON commit_parent
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_entry_no_update BEFORE UPDATE ON commit_entry
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_entry_no_delete BEFORE DELETE ON commit_entry
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER commit_full_no_update BEFORE UPDATE ON commit_full
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;

-- One row. key_check is a known text sealed with the key that belongs to this database.
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    head_seq INTEGER REFERENCES commit_log (seq),
    local_rev INTEGER NOT NULL,
    local_schema_version INTEGER NOT NULL,
    local_fp BLOB NOT NULL CHECK (length(local_fp) = 32),
    last_generation INTEGER NOT NULL,
    key_check BLOB NOT NULL
) STRICT;

-- Edits that are not committed, one row an object. objhash NULL = deleted; base NULL = the
-- object did not exist at head when the row was made.
CREATE TABLE draft (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    objhash BLOB CHECK (length(objhash) = 32),
    base BLOB CHECK (length(base) = 32),
    author TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE generation (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL,
    commit_id BLOB NOT NULL CHECK (length(commit_id) = 32),
    local_rev INTEGER NOT NULL,
    release TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('staged', 'active', 'good', 'failed')),
    at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX generation_digest ON generation (digest, number);

-- token is the SHA-256 of what the browser holds.
CREATE TABLE session (
    token BLOB PRIMARY KEY CHECK (length(token) = 32),
    admin TEXT NOT NULL,
    csrf TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    used_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    author TEXT NOT NULL,
    action TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

PRAGMA user_version = 1;
