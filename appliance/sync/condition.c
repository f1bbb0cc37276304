/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/condition.h"

#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/date.h"
#include "engine/problems_json.h"

#define TEXT_MAX_BYTES ((size_t)4096)
#define PLACEHOLDER    "NODE"
#define TIME_AT        11 /* in "2026-11-30T00:21:00.123Z" */

#define ROW(condition, name, severity, text, next)                                             \
    [CONDITION_##condition] = {(name), (severity), (text), (next)},

static const struct {
    const char *name, *severity, *text, *next;
} table[] = {CONDITIONS(ROW)};

struct finding {
    const struct cluster_facts *f;
    const struct node_facts *self, *node;
    json_t *out;
};

/* ---- texts ---- */

static void
put_revision(struct buf *out, const struct node_facts *n)
{
    char fp[SHA256_HEX + 1];

    hash_hex(&n->head.fp, fp);
    buf_printf(out, "%s at %lld@%.8s", n->name, (long long)n->head.rev, fp);
}

static void
put_seconds(struct buf *out, int64_t ms)
{
    buf_printf(out, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
}

static void
put_both(struct buf *out, const struct node_facts *a, const struct node_facts *b)
{
    put_revision(out, a);
    buf_puts(out, ", ");
    put_revision(out, b);
}

static void
put_shared(struct buf *out, const struct node_facts *n)
{
    const struct sync_head *shared = &n->shared.commit;
    char fp[SHA256_HEX + 1];

    switch (n->shared.state) {
    case SHARED_FOUND:
        hash_hex(&shared->fp, fp);
        buf_printf(out, "; they last shared %lld@%.8s", (long long)shared->rev, fp);
        break;
    case SHARED_NONE: buf_puts(out, "; they never shared a revision"); break;
    case SHARED_SOUGHT:
    case SHARED_UNKNOWN: buf_puts(out, "; what they last shared is not known"); break;
    }
}

static json_t *
next_json(const char *next, const char *node)
{
    CLEANUP(buf_fini) struct buf text;
    const char *at;

    buf_init(&text, TEXT_MAX_BYTES);
    while ((at = strstr(next, PLACEHOLDER)) != NULL) {
        buf_put(&text, next, (size_t)(at - next));
        buf_puts(&text, node);
        next = at + strlen(PLACEHOLDER);
    }
    buf_puts(&text, next);
    return json_foreign_text(buf_str(&text));
}

/* detail goes behind what the table says. */
static void
add(const struct finding *at, enum condition condition, const struct buf *detail)
{
    const char *node = at->node->name;
    CLEANUP(buf_fini) struct buf cause;

    buf_init(&cause, TEXT_MAX_BYTES);
    buf_printf(&cause, "%s %s: %s", node, table[condition].text, buf_str(detail));
    (void)json_array_append_new(
        at->out,
        json_pack(
            "{s:s, s:s, s:o, s:o, s:o, s:o}", "name", table[condition].name, "severity",
            table[condition].severity, "node", json_foreign_text(node), "cause",
            json_foreign_text(buf_str(&cause)), "next", next_json(table[condition].next, node),
            "page", json_sprintf("docs/runbooks/%s.md", table[condition].name)));
}

/* ---- which hold ---- */

static void
find_silence(const struct finding *at)
{
    static const enum condition of[] = {
        [UNREACHABLE] = CONDITION_PEER_UNREACHABLE,
        [KEY_REJECTED] = CONDITION_PEER_KEY_REJECTED,
        [PIN_DIFFERS] = CONDITION_TLS_PIN_DIFFERS,
    };
    const struct node_facts *n = at->node;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (n->silence < UNREACHABLE) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_printf(&detail, "%s; ", n->failure);
    if (n->ever) {
        put_seconds(&detail, n->age_ms);
        buf_puts(&detail, " ago it answered: ");
        put_both(&detail, n, at->self);
    } else {
        buf_puts(&detail, "it has not answered since this node's daemon started");
    }
    add(at, of[n->silence], &detail);
}

static void
put_place(struct buf *out, const struct node_facts *n)
{
    buf_printf(out, "%.8s at %s", n->id, n->url[0] != '\0' ? n->url : "no address");
}

/* Told of the second of the two. */
static void
find_clash(const struct finding *at)
{
    const struct node_facts *n = at->node;

    for (const struct node_facts *m = at->f->nodes; m < n; m++) {
        bool named = strcmp(m->name, n->name) == 0;
        CLEANUP(buf_fini) struct buf detail = {0};

        if (!named && (n->url[0] == '\0' || strcmp(m->url, n->url) != 0)) {
            continue;
        }
        buf_init(&detail, TEXT_MAX_BYTES);
        buf_printf(&detail, "the nodes %s (", m->name);
        put_place(&detail, m);
        buf_printf(&detail, ") and %s (", n->name);
        put_place(&detail, n);
        buf_printf(&detail, ") have one %s", named ? "name" : "address");
        add(at, CONDITION_MEMBER_CLASH, &detail);
    }
}

static void
find_twin(const struct finding *at)
{
    const struct node_facts *n = at->node;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (n->twin[0] == '\0') {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_puts(&detail, "the node ");
    put_place(&detail, n);
    buf_printf(
        &detail, ", and one of the same id at %s; other nodes know one of them only", n->twin);
    add(at, CONDITION_NODE_TWICE, &detail);
}

/* The node with the greatest revision that this one is behind, or NULL. */
static const struct node_facts *
find_ahead(const struct cluster_facts *f)
{
    const struct node_facts *found = NULL;

    for (size_t i = 0; i < f->count; i++) {
        const struct node_facts *n = &f->nodes[i];

        if (i != f->self && n->silence == ANSWERED && n->relation == REL_SELF_BEHIND &&
            (found == NULL || n->head.rev > found->head.rev)) {
            found = n;
        }
    }
    return found;
}

static void
find_relation(const struct finding *at)
{
    const struct node_facts *n = at->node;
    bool is_self = n == at->self;
    const struct node_facts *other = is_self ? find_ahead(at->f) : at->self;
    CLEANUP(buf_fini) struct buf detail = {0};
    CLEANUP(buf_fini) struct buf why;

    ASSERT(n != NULL);
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_init(&why, TEXT_MAX_BYTES);
    if (other != NULL) {
        put_both(&detail, n, other);
        buf_puts(&detail, ", seen ");
        put_seconds(&detail, is_self ? other->age_ms : n->age_ms);
        buf_puts(&detail, " ago");
    }
    if (!is_self && n->relation == REL_DIVERGED) {
        put_shared(&detail, n);
        add(at, CONDITION_DIVERGED, &detail);
        return; /* what it was handed it had to refuse */
    }
    if (n->refusal[0] != '\0') {
        buf_puts(&why, n->refusal);
        add(at, CONDITION_REFUSING, &why);
    }
    if (is_self ? other != NULL : n->relation == REL_PEER_BEHIND) {
        add(at, CONDITION_BEHIND, &detail);
    }
}

static void
find_release(const struct finding *at)
{
    const struct node_facts *n = at->node;
    bool newer = n->relation == REL_PEER_NEWER_RELEASE;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (n == at->self || (strcmp(n->release, at->self->release) == 0 && !newer)) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_printf(
        &detail, "%s has %s, %s has %s", n->name, n->release, at->self->name,
        at->self->release);
    if (newer) {
        buf_printf(
            &detail, "; the configuration there is of schema %d, this node knows up to %d",
            n->head.schema_version, SCHEMA_VERSION);
    }
    add(at, CONDITION_RELEASES_DIFFER, &detail);
}

static void
find_skew(const struct finding *at)
{
    int64_t skew_ms = at->node->skew_ms;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (at->node == at->self ||
        (skew_ms <= CLOCK_SKEW_MAX_MS && skew_ms >= -CLOCK_SKEW_MAX_MS)) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_printf(
        &detail, "its clock is %lld ms %s that of %s, allowed are %d ms",
        (long long)(skew_ms < 0 ? -skew_ms : skew_ms), skew_ms < 0 ? "behind" : "ahead of",
        at->self->name, CLOCK_SKEW_MAX_MS);
    add(at, CONDITION_CLOCK_SKEW, &detail);
}

static void
find_running(const struct finding *at)
{
    const struct node_facts *n = at->node;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (n->unequal_ms <= at->f->round_ms) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_puts(&detail, "stored is ");
    put_revision(&detail, n);
    if (n->running[0] != '\0') {
        buf_printf(&detail, ", HAProxy runs commit %.8s", n->running);
    } else {
        buf_puts(&detail, ", what HAProxy runs is not known");
    }
    buf_puts(&detail, ", for ");
    put_seconds(&detail, n->unequal_ms);
    add(at, CONDITION_NOT_RUNNING, &detail);
}

static void
find_pages(const struct finding *at)
{
    CLEANUP(buf_fini) struct buf detail = {0};

    if (at->node->lost[0] == '\0') {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_puts(&detail, at->node->lost);
    add(at, CONDITION_PAGES_LOST, &detail);
}

static void
find_held(const struct finding *at)
{
    CLEANUP(buf_fini) struct buf detail = {0};

    if (!at->node->held || at->f->count < 2) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_puts(&detail, "keep_in_step of its node settings is off; ");
    put_revision(&detail, at->node);
    buf_puts(&detail, ", and takes only what an apply or an overwrite hands to it");
    add(at, CONDITION_HELD, &detail);
}

static void
find_draft(const struct finding *at)
{
    const struct node_facts *n = at->node;
    CLEANUP(buf_fini) struct buf detail = {0};

    if (n->drafted == 0) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_printf(
        &detail, "%lld object%s, the last one by %s", (long long)n->drafted, PLURAL(n->drafted),
        n->draft_author);
    add(at, CONDITION_UNAPPLIED_DRAFT, &detail);
}

/* Every node that is in step says so of itself. */
static void
find_waiting(const struct finding *at)
{
    const struct engine_waiting *w = &at->f->waiting;
    char until[DATE_TEXT_BYTES];
    CLEANUP(buf_fini) struct buf detail = {0};

    if (at->node != at->self || !w->is) {
        return;
    }
    date_format(w->until_ms, until);
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_printf(&detail, "revision %lld, applied on %s; ", (long long)w->rev, w->node);
    if (w->going_back) {
        buf_puts(&detail, "it was not confirmed in time and goes back");
    } else if (!w->failed) {
        buf_printf(&detail, "it goes back at %.10s %.8s UTC", until, until + TIME_AT);
    } else if (w->retry_at_ms > 0) {
        buf_puts(&detail, "it was not confirmed in time and could not go back so far");
    } else {
        buf_puts(
            &detail,
            "it was not confirmed in time, and the node that is to go back does not answer");
    }
    add(at, CONDITION_UNCONFIRMED, &detail);
}

/* While it moves from one node to another, both or none may be seen with it for a round. */
static bool
is_counted(const struct cluster_facts *f)
{
    return f->vip[0] != '\0' && f->count > 1 && f->unheld_ms > f->round_ms;
}

static void
put_holders(struct buf *out, const struct cluster_facts *f)
{
    const char *between = "";

    for (size_t i = 0; i < f->count; i++) {
        if (f->nodes[i].silence == ANSWERED && f->nodes[i].holds) {
            buf_printf(out, "%s%s", between, f->nodes[i].name);
            between = ", ";
        }
    }
}

static void
find_holders(const struct finding *at)
{
    CLEANUP(buf_fini) struct buf detail = {0};
    CLEANUP(buf_fini) struct buf holders = {0};

    if (!is_counted(at->f)) {
        return;
    }
    buf_init(&detail, TEXT_MAX_BYTES);
    buf_init(&holders, TEXT_MAX_BYTES);
    put_holders(&holders, at->f);
    buf_printf(
        &detail, "%s%s%s, for ", buf_str(&holders), holders.len > 0 ? " have " : "",
        at->f->vip);
    put_seconds(&detail, at->f->unheld_ms);
    if (holders.len == 0 && at->node == at->self) {
        add(at, CONDITION_NO_HOLDER, &detail);
    } else if (at->node->holds) {
        add(at, CONDITION_TWO_HOLDERS, &detail);
    }
}

json_t *
conditions_json(const struct cluster_facts *f)
{
    struct finding at = {.f = f, .self = &f->nodes[f->self], .out = json_array()};

    for (size_t i = 0; i < f->count; i++) {
        at.node = &f->nodes[i];
        find_clash(&at);
        find_twin(&at);
        if (i != f->self) {
            find_silence(&at);
        }
        if (i != f->self && at.node->silence != ANSWERED) {
            continue; /* what it said before may have changed */
        }
        find_relation(&at);
        find_release(&at);
        find_skew(&at);
        find_running(&at);
        find_pages(&at);
        find_held(&at);
        find_draft(&at);
        find_waiting(&at);
        find_holders(&at);
    }
    return at.out;
}
