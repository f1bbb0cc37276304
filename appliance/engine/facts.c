/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/facts.h"

#include "base/json.h"
#include "engine/problems_json.h"

const char *
fact_name(enum fact fact)
{
    static const char *const names[] = {
        [FACT_UNKNOWN] = "unknown", [FACT_YES] = "yes", [FACT_NO] = "no"};

    return names[fact];
}

static json_t *
number_or_null(bool known, int64_t n)
{
    return known ? json_integer(n) : json_null();
}

static json_t *
running_json(const struct engine_status *s)
{
    char commit[SHA256_HEX + 1];

    hash_hex(&s->running_commit, commit);
    return json_pack(
        "{s:b, s:o, s:o, s:o, s:o}", "known", s->running_known ? 1 : 0, "digest",
        json_foreign_or_null(s->running_digest), "commit",
        s->running_known ? json_string(commit) : json_null(), "rev",
        number_or_null(s->running_known, s->running_rev), "local_rev",
        number_or_null(s->running_known, s->running_local_rev));
}

json_t *
facts_json(const struct engine_status *s)
{
    bool up = s->up == FACT_YES;

    return json_pack(
        "{s:{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}, s:o, s:{s:s, s:o, s:o}, "
        "s:b, s:o}",
        "haproxy", "up", fact_name(s->up), "detail", json_foreign_or_null(s->up_detail),
        "version", json_foreign_or_null(s->haproxy_version), "pid",
        number_or_null(up, s->haproxy_pid), "uptime_s", number_or_null(up, s->uptime_s),
        "connections", number_or_null(up, s->connections), "max_connections",
        number_or_null(up, s->max_connections), "old_workers", (json_int_t)s->old_workers,
        "seen_at", json_time(s->seen_at_ms), "running", running_json(s), "serving", "state",
        fact_name(s->serving), "detail", json_foreign_or_null(s->serving_detail), "at",
        json_time(s->serving_at_ms), "started", s->started ? 1 : 0, "reason",
        json_foreign_or_null(s->reason));
}
