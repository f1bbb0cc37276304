/* SPDX-License-Identifier: Apache-2.0 */
/* Rules in the order in which HAProxy evaluates them: those of the listener, then service by
 * service what guards it and its rules. */
#include "render/backend.h"
#include "render/quote.h"
#include "render/rule.h"

#define RATE_TABLE_SIZE "100k" /* addresses that are remembered of a service */
#define REGEX_MAX_BYTES ((size_t)4 << 10)

/* What is added to a rule's own conditions. */
struct guard {
    struct text service; /* only its requests; empty: of all */
    bool unrouted;       /* only while no rule has chosen a pool */
};

static bool
is_response(const struct object *rule)
{
    int64_t action = fields_int(rule, F_RULE_ACTION);

    return action == V_RULE_ACTION_SET_RESPONSE_HEADER ||
           action == V_RULE_ACTION_ADD_RESPONSE_HEADER ||
           action == V_RULE_ACTION_DEL_RESPONSE_HEADER;
}

bool
rule_has_body(const struct object *rule)
{
    return fields_int(rule, F_RULE_ACTION) == V_RULE_ACTION_RETURN &&
           fields_text(rule, F_RULE_BODY).len > 0;
}

/* ---- conditions ---- */

static void
put_guard(struct buf *out, const struct guard *g)
{
    if (g->service.len > 0) {
        PUT(out, " " RULE_SERVICE);
        writer_put_text(out, g->service);
    }
    if (g->unrouted) {
        PUT(out, " !lockstep.routed");
    }
}

static void
put_use(struct writer *w, const struct object *rule, uint32_t i)
{
    const struct value *use = &object_field(rule, F_RULE_CONDITIONS)->u.items[i];
    const struct object *o = layout_condition(w->layout, rule, i);

    /* A condition that is missing must never count as one that holds. */
    if (o == NULL) {
        PUT(w->out, " { always_false }");
        return;
    }
    buf_puts(
        w->out, use->u.items[F_RULE_CONDITIONS_NEGATE].u.i != 0 ? " !" RULE_CONDITION
                                                                : " " RULE_CONDITION);
    writer_put_text(w->out, o->name);
}

/* " if ...". HAProxy's "||" binds less than the "and" between words, so that each alternative
 * has the guard. */
static void
put_if(struct writer *w, const struct object *rule, const struct guard *g)
{
    uint32_t count = object_field(rule, F_RULE_CONDITIONS)->count;
    bool any = fields_int(rule, F_RULE_MATCH) == V_RULE_MATCH_ANY;

    PUT(w->out, " if");
    /* Without a condition HAProxy would warn that no later rule is ever reached. */
    if (count == 0 && g->service.len == 0 && !g->unrouted) {
        PUT(w->out, " TRUE");
    }
    put_guard(w->out, g);
    for (uint32_t i = 0; i < count; i++) {
        if (any && i > 0) {
            PUT(w->out, " ||");
            put_guard(w->out, g);
        }
        put_use(w, rule, i);
    }
}

/* The ACLs of a rule's conditions, each once in a listener; number is not 0. */
static void
put_acls(struct writer *w, const struct object *rule, uint32_t number)
{
    struct layout *p = w->layout;

    for (uint32_t i = 0; i < object_field(rule, F_RULE_CONDITIONS)->count; i++) {
        const struct object *o = layout_condition(p, rule, i);
        size_t place;

        if (o == NULL) {
            continue;
        }
        place = refs_place(&p->refs, o);
        if (p->condition_used[place] != number) {
            p->condition_used[place] = number;
            condition_put_acl(w, o);
        }
    }
}

/* ---- actions ---- */

static void
put_status(struct writer *w, const struct object *rule, int64_t usual)
{
    int64_t status = fields_int(rule, F_RULE_STATUS);

    writer_put_int(w->out, status != 0 ? status : usual);
}

static unsigned
put_return(struct writer *w, const struct object *rule)
{
    PUT(w->out, "return status ");
    put_status(w, rule, 200);
    if (rule_has_body(rule)) {
        PUT(w->out, " content-type ");
        quote_word(w->out, fields_text(rule, F_RULE_CONTENT_TYPE));
        PUT(w->out, " file " BODY_FOLDER);
        writer_put_text(w->out, rule->name);
        PUT(w->out, BODY_SUFFIX);
    }
    return F_RULE_BODY;
}

static unsigned
put_redirect(struct writer *w, const struct object *rule)
{
    PUT(w->out, "redirect ");
    buf_puts(w->out, fields_word(rule, F_RULE_REDIRECT_BY));
    buf_putc(w->out, ' ');
    if (fields_int(rule, F_RULE_REDIRECT_BY) == V_RULE_REDIRECT_BY_SCHEME) {
        PUT(w->out, "https");
    } else {
        quote_format(w->out, fields_text(rule, F_RULE_TARGET));
    }
    PUT(w->out, " code ");
    put_status(w, rule, 302);
    return F_RULE_TARGET;
}

static unsigned
put_pool(struct writer *w, const struct object *rule)
{
    const struct value *ref = object_field(rule, F_RULE_POOL);
    const struct object *pool = NULL;

    if (ref->is_null) {
        layout_problem(w->layout, rule, F_RULE_POOL, "It names no pool.");
    } else {
        pool = layout_follow(w->layout, rule, F_RULE_POOL, K_POOL, ref->u.text);
    }
    PUT(w->out, "set-var(txn.lockstep_pool) str(");
    if (pool != NULL) {
        writer_put_text(w->out, pool->name);
    }
    buf_putc(w->out, ')');
    return F_RULE_POOL;
}

static struct text
without_slash(struct text path)
{
    while (path.len > 0 && path.s[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

/* Whole segments only: "^/old(/.*)?$" to "/new\1"; to "/" the slash has to be kept apart. */
static unsigned
put_replace(struct writer *w, const struct object *rule)
{
    struct text from = without_slash(fields_text(rule, F_RULE_PATH_PREFIX));
    struct text to = without_slash(fields_text(rule, F_RULE_PATH));
    CLEANUP(buf_fini) struct buf regex;
    CLEANUP(buf_fini) struct buf format;

    buf_init(&regex, REGEX_MAX_BYTES);
    buf_init(&format, REGEX_MAX_BYTES);
    buf_putc(&regex, '^');
    for (uint32_t i = 0; i < from.len; i++) {
        if (strchr("\\^$.|?*+()[]{}", from.s[i]) != NULL) {
            buf_putc(&regex, '\\');
        }
        buf_putc(&regex, from.s[i]);
    }
    buf_puts(&regex, to.len > 0 ? "(/.*)?$" : "(?:/(.*))?$");
    buf_put(&format, to.s, to.len);
    buf_puts(&format, to.len > 0 ? "\\1" : "/\\1");
    PUT(w->out, "replace-path ");
    quote_word(w->out, (struct text){buf_str(&regex), (uint32_t)regex.len});
    buf_putc(w->out, ' ');
    quote_format(w->out, (struct text){buf_str(&format), (uint32_t)format.len});
    return F_RULE_PATH;
}

static unsigned
put_header(struct writer *w, const struct object *rule, const char *verb, bool value)
{
    buf_puts(w->out, verb);
    buf_putc(w->out, ' ');
    quote_word(w->out, fields_text(rule, F_RULE_HEADER));
    if (value) {
        buf_putc(w->out, ' ');
        quote_format(w->out, fields_text(rule, F_RULE_VALUE));
    }
    return value ? F_RULE_VALUE : F_RULE_HEADER;
}

/* The variable that says at the answer that a rule applied at the request. */
static void
put_variable(struct buf *out, const struct object *rule)
{
    PUT(out, "txn.lockstep_rule_");
    buf_puts(out, rule->id);
}

static unsigned
put_action(struct writer *w, const struct object *rule)
{
    switch (fields_int(rule, F_RULE_ACTION)) {
    case V_RULE_ACTION_DENY:
        PUT(w->out, "deny status ");
        put_status(w, rule, 403);
        return F_RULE_STATUS;
    case V_RULE_ACTION_RETURN: return put_return(w, rule);
    case V_RULE_ACTION_REDIRECT: return put_redirect(w, rule);
    case V_RULE_ACTION_USE_POOL: return put_pool(w, rule);
    case V_RULE_ACTION_SET_PATH:
        PUT(w->out, "set-path ");
        quote_format(w->out, fields_text(rule, F_RULE_PATH));
        return F_RULE_PATH;
    case V_RULE_ACTION_REPLACE_PATH: return put_replace(w, rule);
    case V_RULE_ACTION_SET_HEADER: return put_header(w, rule, "set-header", true);
    case V_RULE_ACTION_ADD_HEADER: return put_header(w, rule, "add-header", true);
    case V_RULE_ACTION_DEL_HEADER: return put_header(w, rule, "del-header", false);
    }
    PUT(w->out, "set-var(");
    put_variable(w->out, rule);
    PUT(w->out, ") bool(true)");
    return F_RULE_ACTION;
}

static void
put_rules(
    struct writer *w, const struct layout_rules *rules, struct text service, uint32_t number)
{
    for (uint32_t i = rules->first; i < rules->first + rules->count; i++) {
        const struct object *rule = w->layout->rules[i];
        struct guard g = {.service = service};
        unsigned field;

        PUT(w->out, "    # rule ");
        writer_put_text(w->out, rule->name);
        writer_end_of(w, rule, F_RULE_NAME);
        put_acls(w, rule, number);
        g.unrouted = fields_int(rule, F_RULE_ACTION) == V_RULE_ACTION_USE_POOL;
        PUT(w->out, "    http-request ");
        field = put_action(w, rule);
        put_if(w, rule, &g);
        writer_end_of(w, rule, (int)field);
    }
}

static void
put_response(struct writer *w, const struct object *rule)
{
    int64_t action = fields_int(rule, F_RULE_ACTION);
    unsigned field;

    PUT(w->out, "    http-after-response ");
    if (action == V_RULE_ACTION_SET_RESPONSE_HEADER) {
        field = put_header(w, rule, "set-header", true);
    } else if (action == V_RULE_ACTION_ADD_RESPONSE_HEADER) {
        field = put_header(w, rule, "add-header", true);
    } else {
        field = put_header(w, rule, "del-header", false);
    }
    PUT(w->out, " if { var(");
    put_variable(w->out, rule);
    PUT(w->out, ") -m found }");
    writer_end_of(w, rule, (int)field);
}

static void
put_responses(struct writer *w, const struct layout_rules *rules)
{
    for (uint32_t i = rules->first; i < rules->first + rules->count; i++) {
        if (is_response(w->layout->rules[i])) {
            put_response(w, w->layout->rules[i]);
        }
    }
}

/* ---- services ---- */

static void
put_rate(struct writer *w, const struct object *service)
{
    PUT(w->out, "    http-request track-sc0 src,ipmask(32,64) table " LAYOUT_BACKEND_RATE);
    writer_put_text(w->out, service->name);
    PUT(w->out, " if " RULE_SERVICE);
    writer_put_text(w->out, service->name);
    writer_end(w, F_SERVICE_RATE_LIMIT);
    PUT(w->out, "    http-request deny status 429 content-type \"text/plain; charset=utf-8\""
                " hdr Retry-After ");
    writer_put_int(w->out, fields_int(service, F_SERVICE_RATE_LIMIT_PERIOD_S));
    PUT(w->out, " string \"Too many requests.\\n\" if " RULE_SERVICE);
    writer_put_text(w->out, service->name);
    PUT(w->out, " { sc_http_req_rate(0," LAYOUT_BACKEND_RATE);
    writer_put_text(w->out, service->name);
    PUT(w->out, ") gt ");
    writer_put_int(w->out, fields_int(service, F_SERVICE_RATE_LIMIT));
    PUT(w->out, " }");
    writer_end(w, F_SERVICE_RATE_LIMIT);
}

static void
put_service(struct writer *w, const struct layout_service *s, uint32_t number)
{
    const struct object *listener = w->object;
    const struct object *o = s->object;

    w->object = o;
    PUT(w->out, "    # service ");
    writer_put_text(w->out, o->name);
    writer_end(w, F_SERVICE_NAME);
    PUT(w->out, "    acl " RULE_SERVICE);
    writer_put_text(w->out, o->name);
    PUT(w->out, " var(txn.lockstep_service) -m str " LAYOUT_SERVICE);
    writer_put_text(w->out, o->name);
    writer_end(w, F_SERVICE_NAME);
    if (fields_differ(o, F_SERVICE_ALLOWED_NETWORKS)) {
        PUT(w->out, "    http-request deny status 403 if " RULE_SERVICE);
        writer_put_text(w->out, o->name);
        PUT(w->out, " !{ src");
        list_put(w->out, LIST_SERVICE, o->name);
        PUT(w->out, " }");
        writer_end(w, F_SERVICE_ALLOWED_NETWORKS);
    }
    if (fields_differ(o, F_SERVICE_RATE_LIMIT)) {
        put_rate(w, o);
    }
    put_rules(w, &s->rules, o->name, number);
    w->object = listener;
}

static bool
has_pool_rule(const struct layout *p, const struct layout_rules *rules)
{
    for (uint32_t i = rules->first; i < rules->first + rules->count; i++) {
        if (fields_int(p->rules[i], F_RULE_ACTION) == V_RULE_ACTION_USE_POOL) {
            return true;
        }
    }
    return false;
}

/* The next guarded service that is served here, from *i on; NULL behind the last. */
static const struct layout_service *
next_service(const struct layout *p, const struct layout_listener *l, uint32_t *i)
{
    while (l->guarded && *i < l->count) {
        const struct layout_service *s = &p->services[p->routes[l->first + (*i)++]];

        if (s->guarded && layout_serves(s, l->object)) {
            return s;
        }
    }
    return NULL;
}

static bool
chooses_pool(const struct layout *p, const struct layout_listener *l)
{
    const struct layout_service *s;
    uint32_t i = 0;
    bool found = has_pool_rule(p, &l->rules);

    while (!found && (s = next_service(p, l, &i)) != NULL) {
        found = has_pool_rule(p, &s->rules);
    }
    return found;
}

void
rule_write_listener(struct writer *w, const struct layout_listener *l)
{
    uint32_t number = (uint32_t)(l - w->layout->listeners) + 1;
    bool routed = chooses_pool(w->layout, l);
    const struct layout_service *s;
    uint32_t i = 0;

    if (routed) {
        writer_fixed(w, "    acl lockstep.routed var(txn.lockstep_pool) -m found\n");
    }
    if (l->rules.count > 0) {
        writer_fixed(
            w, "    # A service that is off is off before any rule.\n"
               "    http-request return status 503 default-errorfiles"
               " if { var(txn.lockstep_backend) -m str " LAYOUT_BACKEND_DISABLED " }\n");
    }
    put_rules(w, &l->rules, (struct text){"", 0}, number);
    while ((s = next_service(w->layout, l, &i)) != NULL) {
        put_service(w, s, number);
    }
    put_responses(w, &l->rules);
    for (i = 0; (s = next_service(w->layout, l, &i)) != NULL;) {
        put_responses(w, &s->rules);
    }
    if (routed && w->layout->webui.listener == l && w->layout->webui.first) {
        writer_fixed(
            w, "    use_backend " LAYOUT_BACKEND_WEBUI
               " if { var(txn.lockstep_backend) -m str " LAYOUT_BACKEND_WEBUI " }\n");
    }
    if (routed) {
        writer_fixed(w, "    use_backend %[var(txn.lockstep_pool)] if lockstep.routed\n");
    }
}

void
haproxy_rate_write(struct writer *w)
{
    for (size_t i = 0; i < w->layout->service_count; i++) {
        const struct layout_service *s = &w->layout->services[i];

        if (!s->guarded || !s->served || fields_int(s->object, F_SERVICE_RATE_LIMIT) == 0) {
            continue;
        }
        w->object = s->object;
        writer_end(w, F_SERVICE_RATE_LIMIT);
        PUT(w->out, "backend " LAYOUT_BACKEND_RATE);
        writer_put_text(w->out, s->object->name);
        writer_end(w, F_SERVICE_RATE_LIMIT);
        PUT(w->out, "    stick-table type ipv6 size " RATE_TABLE_SIZE " expire ");
        writer_put_int(w->out, fields_int(s->object, F_SERVICE_RATE_LIMIT_PERIOD_S));
        PUT(w->out, "s peers " BACKEND_PEERS " store http_req_rate(");
        writer_put_int(w->out, fields_int(s->object, F_SERVICE_RATE_LIMIT_PERIOD_S));
        PUT(w->out, "s)");
        writer_end(w, F_SERVICE_RATE_LIMIT_PERIOD_S);
    }
    w->object = NULL;
}
