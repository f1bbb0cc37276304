-- SPDX-License-Identifier: Apache-2.0
-- Schema version 2: its kinds and fields need no change of tables. A program of version 1 finds
-- a number that it does not know and leaves the file alone.

-- The commit that goes back unless it is confirmed; no row: none waits.
CREATE TABLE waiting (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL REFERENCES commit_log (seq)
) STRICT;

PRAGMA user_version = 2;
