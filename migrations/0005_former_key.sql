-- SPDX-License-Identifier: Apache-2.0
-- The peer key that this node had before, sealed, and until when (wall clock) it is taken, so that
-- a restart locks nobody out who has not heard of the new one. No row: there is none.
CREATE TABLE former_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    peer_key BLOB NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 5;
