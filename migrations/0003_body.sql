-- SPDX-License-Identifier: Apache-2.0
-- Bodies in one tree instead of a table and an index: a page less for each body that is written.

CREATE TABLE body_new (
    objhash BLOB NOT NULL CHECK (length(objhash) = 32),
    kind TEXT NOT NULL,
    form INTEGER NOT NULL CHECK (form BETWEEN 0 AND 3),
    data BLOB NOT NULL,
    PRIMARY KEY (objhash, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO body_new SELECT objhash, kind, form, data FROM body ORDER BY objhash, kind;
DROP TABLE body;
ALTER TABLE body_new RENAME TO body;

PRAGMA user_version = 3;
