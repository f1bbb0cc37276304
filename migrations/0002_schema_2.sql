-- SPDX-License-Identifier: Apache-2.0
-- Schema version 2 adds kinds and fields, and the tables hold them as they are. The number
-- alone is raised: a program of version 1 must not open what it cannot read.
PRAGMA user_version = 2;
