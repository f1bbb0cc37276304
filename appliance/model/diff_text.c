/* SPDX-License-Identifier: Apache-2.0 */
/* Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), in its linear-space form:
 * a box of lines is split where the furthest paths from both of its corners meet, until a side
 * is empty. Open boxes wait on a stack of our own, so that no text decides how deep the C stack
 * grows. Lines are numbered first (equal lines get equal numbers), so that comparing two lines
 * is comparing two integers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/diff.h"

#define MAX_EDITS 10000
#define CONTEXT   3
/* Furthest-path steps: the two searches share the edits. */
#define MAX_STEPS (MAX_EDITS / 2 + 1)
#define LINES_MAX (INT32_MAX / 2)

struct line {
    const char *s;
    uint32_t len; /* with its line feed, which the last line may lack */
    uint32_t hash;
    uint32_t id;
};

struct side {
    struct line *lines;
    bool *changed; /* deleted (first text) or added (second) */
    int32_t count;
};

struct box {
    int32_t a_from, a_to, b_from, b_to;
};

struct work {
    struct side a, b;
    struct box *boxes;
    size_t box_count, box_cap;
    int32_t *forward, *backward; /* furthest x per diagonal */
};

static void
side_init(struct side *side, const char *text)
{
    size_t count = 0;
    for (const char *s = text; *s != '\0'; count++) {
        const char *lf = strchr(s, '\n');
        s = lf != NULL ? lf + 1 : s + strlen(s);
    }
    ASSERT(count < LINES_MAX);
    side->lines = xcalloc(count + 1, sizeof(side->lines[0]));
    side->changed = xcalloc(count + 1, sizeof(side->changed[0]));
    side->count = (int32_t)count;
    const char *s = text;
    for (size_t i = 0; i < count; i++) {
        uint32_t hash = 2166136261u; /* FNV-1a */
        const char *p = s;
        do {
            hash = (uint32_t)((uint64_t)(hash ^ (unsigned char)*p) * 16777619u);
        } while (*p++ != '\n' && *p != '\0');
        side->lines[i] = (struct line){s, (uint32_t)(p - s), hash, 0};
        s = p;
    }
}

static void
side_fini(struct side *side)
{
    free(side->lines);
    free(side->changed);
}

static struct line *
line_at(const struct work *w, size_t i)
{
    size_t in_a = (size_t)w->a.count;
    return i < in_a ? &w->a.lines[i] : &w->b.lines[i - in_a];
}

static bool
equal_lines(const struct line *a, const struct line *b)
{
    return a->hash == b->hash && a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

/* Gives equal lines of both texts equal numbers. */
static uint32_t
number_lines(struct work *w)
{
    size_t total = (size_t)w->a.count + (size_t)w->b.count;
    size_t slots = 16;
    while (slots < total * 2) {
        slots *= 2;
    }
    uint32_t *table = xcalloc(slots, sizeof(table[0])); /* line + 1, of either text */
    uint32_t next = 0;
    for (size_t i = 0; i < total; i++) {
        struct line *line = line_at(w, i);
        size_t at = line->hash & (slots - 1);
        while (table[at] != 0 && !equal_lines(line_at(w, table[at] - 1), line)) {
            at = (at + 1) & (slots - 1);
        }
        if (table[at] == 0) {
            table[at] = (uint32_t)i + 1;
            line->id = next++;
        } else {
            line->id = line_at(w, table[at] - 1)->id;
        }
    }
    free(table);
    return next;
}

static void
box_push(struct work *w, struct box box)
{
    if (w->box_count == w->box_cap) {
        w->box_cap = w->box_cap == 0 ? 64 : w->box_cap * 2;
        w->boxes = xrealloc(w->boxes, w->box_cap * sizeof(w->boxes[0]));
    }
    w->boxes[w->box_count++] = box;
}

/* One direction of the search in one box. Diagonal k holds the points with x - y == k, counted
 * from the corner where the direction starts. low and high take diagonals out of the search
 * that have left the box. */
struct search {
    int32_t *best;
    int32_t low, high;
};

struct frame {
    const struct line *a, *b;
    int32_t n, m;   /* lines of each side */
    int32_t offset; /* index of diagonal 0 in best[] */
    int32_t width;  /* of best[] */
    bool backward;
};

static bool
same_line(const struct frame *f, int32_t x, int32_t y)
{
    return f->backward ? f->a[f->n - 1 - x].id == f->b[f->m - 1 - y].id
                       : f->a[x].id == f->b[y].id;
}

/* Moves the paths of one direction to step d. True when a path meets one of the other
 * direction; then *ret_x, *ret_y is where, counted from this direction's corner. */
static bool
search_step(
    const struct frame *f, struct search *own, const struct search *other, int32_t d,
    int32_t *ret_x, int32_t *ret_y)
{
    int32_t delta = f->n - f->m;
    /* With an odd delta the forward paths meet first, with an even one the backward ones. */
    bool meets = ((delta & 1) != 0) != f->backward;
    for (int32_t k = -d + own->low; k <= d - own->high; k += 2) {
        int32_t *best = own->best + f->offset + k;
        int32_t x = k == -d || (k != d && best[-1] < best[1]) ? best[1] : best[-1] + 1;
        int32_t y = x - k;
        while (x < f->n && y < f->m && same_line(f, x, y)) {
            x++;
            y++;
        }
        *best = x;
        int32_t mirror = f->offset + delta - k;
        if (x > f->n) {
            own->high += 2;
        } else if (y > f->m) {
            own->low += 2;
        } else if (
            meets && mirror >= 0 && mirror < f->width && other->best[mirror] != -1 &&
            x >= f->n - other->best[mirror]) {
            *ret_x = x;
            *ret_y = y;
            return true;
        }
    }
    return false;
}

enum split { SPLIT_FOUND, SPLIT_ALL_DIFFER, SPLIT_TOO_MANY };

/* Where an optimal path crosses the middle of a box whose corners differ. */
static enum split
box_split(struct work *w, const struct box *box, int32_t *ret_x, int32_t *ret_y)
{
    struct frame f = {
        .a = w->a.lines + box->a_from,
        .b = w->b.lines + box->b_from,
        .n = box->a_to - box->a_from,
        .m = box->b_to - box->b_from,
    };
    int64_t all = ((int64_t)f.n + f.m + 1) / 2;
    int32_t steps = all < MAX_STEPS ? (int32_t)all : MAX_STEPS;
    f.offset = steps;
    f.width = 2 * steps + 2;
    for (int32_t i = 0; i < f.width; i++) {
        w->forward[i] = -1;
        w->backward[i] = -1;
    }
    w->forward[f.offset + 1] = 0;
    w->backward[f.offset + 1] = 0;
    struct search forward = {w->forward, 0, 0};
    struct search backward = {w->backward, 0, 0};
    int32_t x = 0;
    int32_t y = 0;
    for (int32_t d = 0; d < steps; d++) {
        f.backward = false;
        if (search_step(&f, &forward, &backward, d, &x, &y)) {
            *ret_x = box->a_from + x;
            *ret_y = box->b_from + y;
            return SPLIT_FOUND;
        }
        f.backward = true;
        if (search_step(&f, &backward, &forward, d, &x, &y)) {
            *ret_x = box->a_to - x;
            *ret_y = box->b_to - y;
            return SPLIT_FOUND;
        }
    }
    return steps == all ? SPLIT_ALL_DIFFER : SPLIT_TOO_MANY;
}

static void
box_trim(const struct work *w, struct box *box)
{
    const struct line *a = w->a.lines;
    const struct line *b = w->b.lines;
    while (box->a_from < box->a_to && box->b_from < box->b_to &&
           a[box->a_from].id == b[box->b_from].id) {
        box->a_from++;
        box->b_from++;
    }
    while (box->a_from < box->a_to && box->b_from < box->b_to &&
           a[box->a_to - 1].id == b[box->b_to - 1].id) {
        box->a_to--;
        box->b_to--;
    }
}

static void
mark_changed(struct work *w, const struct box *box)
{
    for (int32_t i = box->a_from; i < box->a_to; i++) {
        w->a.changed[i] = true;
    }
    for (int32_t i = box->b_from; i < box->b_to; i++) {
        w->b.changed[i] = true;
    }
}

/* Marks the lines of a shortest edit script; false when it has more than MAX_EDITS lines. */
static bool
find_changes(struct work *w)
{
    size_t width = 2 * (size_t)MAX_STEPS + 2;
    w->forward = xmalloc(width * sizeof(w->forward[0]));
    w->backward = xmalloc(width * sizeof(w->backward[0]));
    int64_t edits = 0;
    box_push(w, (struct box){0, w->a.count, 0, w->b.count});
    while (w->box_count > 0) {
        struct box box = w->boxes[--w->box_count];
        box_trim(w, &box);
        int32_t x = 0;
        int32_t y = 0;
        enum split split = SPLIT_ALL_DIFFER;
        if (box.a_from < box.a_to && box.b_from < box.b_to) {
            split = box_split(w, &box, &x, &y);
        }
        if (split == SPLIT_FOUND) {
            box_push(w, (struct box){x, box.a_to, y, box.b_to});
            box_push(w, (struct box){box.a_from, x, box.b_from, y});
            continue;
        }
        edits += (int64_t)(box.a_to - box.a_from) + (box.b_to - box.b_from);
        if (split == SPLIT_TOO_MANY || edits > MAX_EDITS) {
            return false;
        }
        mark_changed(w, &box);
    }
    return true;
}

static void
put_line(struct buf *out, char sign, const struct line *line)
{
    buf_putc(out, sign);
    buf_put(out, line->s, line->len);
    if (line->s[line->len - 1] != '\n') {
        buf_puts(out, "\n\\ No newline at end of file\n");
    }
}

/* "start,count" of a hunk header: 1-based, and the line before when the side is empty. */
static void
put_range(struct buf *out, char sign, int32_t from, int32_t to)
{
    int32_t count = to - from;
    buf_printf(out, "%c%d", sign, count == 0 ? from : from + 1);
    if (count != 1) {
        buf_printf(out, ",%d", count);
    }
}

static void
put_hunk(const struct work *w, const struct box *hunk, struct buf *out)
{
    buf_puts(out, "@@ ");
    put_range(out, '-', hunk->a_from, hunk->a_to);
    buf_putc(out, ' ');
    put_range(out, '+', hunk->b_from, hunk->b_to);
    buf_puts(out, " @@\n");
    int32_t i = hunk->a_from;
    int32_t j = hunk->b_from;
    while (i < hunk->a_to || j < hunk->b_to) {
        if (i < hunk->a_to && w->a.changed[i]) {
            put_line(out, '-', &w->a.lines[i++]);
        } else if (j < hunk->b_to && w->b.changed[j]) {
            put_line(out, '+', &w->b.lines[j++]);
        } else {
            put_line(out, ' ', &w->a.lines[i++]);
            j++;
        }
    }
}

/* End of the hunk that starts with the change at i, j: changes with up to twice the context of
 * equal lines between them share one. */
static struct box
hunk_extent(const struct work *w, int32_t i, int32_t j)
{
    int32_t before = i < CONTEXT ? i : CONTEXT; /* lines before i are equal to those before j */
    struct box hunk = {i - before, i, j - before, j};
    int32_t equal = 0;
    while (i < w->a.count || j < w->b.count) {
        bool deleted = i < w->a.count && w->a.changed[i];
        bool added = j < w->b.count && w->b.changed[j];
        if (!deleted && !added && ++equal > 2 * CONTEXT) {
            break;
        }
        i += deleted || !added;
        j += added || !deleted;
        if (deleted || added) {
            equal = 0;
            hunk.a_to = i;
            hunk.b_to = j;
        }
    }
    int32_t rest = w->a.count - hunk.a_to;
    int32_t after = rest < CONTEXT ? rest : CONTEXT;
    hunk.a_to += after;
    hunk.b_to += after;
    return hunk;
}

static void
put_hunks(const struct work *w, struct buf *out)
{
    int32_t i = 0;
    int32_t j = 0;
    while (i < w->a.count || j < w->b.count) {
        bool deleted = i < w->a.count && w->a.changed[i];
        bool added = j < w->b.count && w->b.changed[j];
        if (!deleted && !added) {
            i++;
            j++;
            continue;
        }
        struct box hunk = hunk_extent(w, i, j);
        put_hunk(w, &hunk, out);
        i = hunk.a_to;
        j = hunk.b_to;
    }
}

/* The line that stands for a diff that is too long: how many lines have no partner. */
static void
put_summary(const struct work *w, uint32_t ids, struct buf *out)
{
    int32_t *balance = xcalloc((size_t)ids + 1, sizeof(balance[0]));
    for (int32_t i = 0; i < w->a.count; i++) {
        balance[w->a.lines[i].id]++;
    }
    for (int32_t i = 0; i < w->b.count; i++) {
        balance[w->b.lines[i].id]--;
    }
    int64_t removed = 0;
    int64_t added = 0;
    for (uint32_t i = 0; i < ids; i++) {
        removed += balance[i] > 0 ? balance[i] : 0;
        added -= balance[i] < 0 ? balance[i] : 0;
    }
    free(balance);
    buf_printf(
        out, "%lld line%s removed and %lld added, too many to list\n", (long long)removed,
        PLURAL(removed), (long long)added);
}

err_t
diff_text(const char *name, const char *a, const char *b, struct buf *out, struct error *e)
{
    if (strcmp(a, b) == 0) {
        return ERR_OK;
    }
    struct work w = {0};
    side_init(&w.a, a);
    side_init(&w.b, b);
    uint32_t ids = number_lines(&w);
    bool listed = find_changes(&w);
    if (listed) {
        buf_printf(out, "--- a/%s\n+++ b/%s\n", name, name);
        put_hunks(&w, out);
    } else {
        put_summary(&w, ids, out);
    }
    side_fini(&w.a);
    side_fini(&w.b);
    free(w.boxes);
    free(w.forward);
    free(w.backward);
    err_t err = buf_status(out, e);
    if (err == ERR_OK && !listed) {
        err = error_set(
            e, ERR_LIMIT, "%s: the texts differ in more than %d lines", name, MAX_EDITS);
    }
    return err;
}
