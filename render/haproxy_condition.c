/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions as named ACLs, whose values stand in files: a line of HAProxy has 64 words. */
#include "render/quote.h"
#include "render/rule.h"

static bool
is_present(const struct object *o)
{
    return fields_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_PRESENT;
}

static bool
is_path_prefix(const struct object *o)
{
    return fields_int(o, F_CONDITION_TYPE) == V_CONDITION_TYPE_PATH &&
           fields_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_PREFIX;
}

static void
put_keyed(struct buf *out, const char *fetch, const struct object *o, const char *converter)
{
    buf_puts(out, fetch);
    buf_putc(out, '(');
    writer_put_text(out, fields_text(o, F_CONDITION_KEY));
    buf_putc(out, ')');
    buf_puts(out, converter);
}

/* What is looked at. */
static void
put_sample(struct buf *out, const struct object *o)
{
    switch (fields_int(o, F_CONDITION_TYPE)) {
    case V_CONDITION_TYPE_SRC: PUT(out, "src"); return;
    case V_CONDITION_TYPE_METHOD: PUT(out, "method"); return;
    case V_CONDITION_TYPE_HOST: PUT(out, "var(txn.lockstep_host)"); return;
    case V_CONDITION_TYPE_PATH:
        /* With a slash at the end, as the values in the file have it. */
        PUT(out, LAYOUT_PATH);
        buf_puts(out, is_path_prefix(o) ? ",concat(/)" : "");
        return;
    case V_CONDITION_TYPE_HEADER: put_keyed(out, "req.fhdr", o, ""); return;
    case V_CONDITION_TYPE_QUERY: put_keyed(out, "url_param", o, ",url_dec(1)"); return;
    case V_CONDITION_TYPE_COOKIE: put_keyed(out, "req.cook", o, ""); return;
    case V_CONDITION_TYPE_TLS: PUT(out, "ssl_fc"); return;
    }
}

static void
put_match(struct buf *out, const struct object *o)
{
    static const char *const words[] = {
        [V_CONDITION_MATCH_EXACT] = "str",  [V_CONDITION_MATCH_PREFIX] = "beg",
        [V_CONDITION_MATCH_SUFFIX] = "end", [V_CONDITION_MATCH_CONTAINS] = "sub",
        [V_CONDITION_MATCH_REGEX] = "reg",  [V_CONDITION_MATCH_PRESENT] = "found",
    };
    int64_t type = fields_int(o, F_CONDITION_TYPE);

    if (type == V_CONDITION_TYPE_SRC || type == V_CONDITION_TYPE_METHOD) {
        return;
    }
    PUT(out, " -m ");
    buf_puts(out, words[fields_int(o, F_CONDITION_MATCH)]);
    if (!is_present(o) &&
        (type == V_CONDITION_TYPE_HOST || fields_int(o, F_CONDITION_IGNORE_CASE) != 0)) {
        PUT(out, " -i");
    }
}

static bool
has_file(const struct object *o)
{
    int64_t type = fields_int(o, F_CONDITION_TYPE);

    return type == V_CONDITION_TYPE_SRC || type == V_CONDITION_TYPE_METHOD ||
           (type != V_CONDITION_TYPE_TLS && !is_present(o));
}

void
condition_put_acl(struct writer *w, const struct object *o)
{
    PUT(w->out, "    acl " RULE_CONDITION);
    writer_put_text(w->out, o->name);
    buf_putc(w->out, ' ');
    put_sample(w->out, o);
    if (fields_int(o, F_CONDITION_TYPE) != V_CONDITION_TYPE_TLS) {
        put_match(w->out, o);
    }
    if (has_file(o)) {
        list_put(w->out, LIST_CONDITION, o->name);
    }
    writer_end_of(w, o, has_file(o) ? F_CONDITION_VALUES : F_CONDITION_TYPE);
}

static void
put_value(struct buf *out, const struct object *o, struct text value)
{
    bool prefix = is_path_prefix(o);

    /* A line that starts with # would be a comment; spaces in front are dropped. */
    if (value.s[0] == '#') {
        buf_putc(out, ' ');
    }
    while (prefix && value.len > 0 && value.s[value.len - 1] == '/') {
        value.len--;
    }
    writer_put_text(out, value);
    buf_puts(out, prefix ? "/\n" : "\n");
}

void
condition_write_list(struct rendered *r, const struct object *o)
{
    const struct value *values = object_field(o, F_CONDITION_VALUES);
    struct artefact *a;

    if (!has_file(o)) {
        return;
    }
    a = rendered_add(r, LIST_FOLDER LIST_CONDITION, o->name.s, LIST_SUFFIX);
    a->object = o;
    for (uint32_t i = 0; i < values->count; i++) {
        put_value(&a->bytes, o, values->u.items[i].u.text);
    }
}
