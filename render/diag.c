/* SPDX-License-Identifier: Apache-2.0 */
#include "render/diag.h"

#include "base/utf8.h"

#define MESSAGE_MAX_BYTES 1000u
#define CONFIG_NAME       "haproxy.cfg:"

/* A piece of the output. */
struct span {
    const char *s;
    size_t len;
};

/* One message of HAProxy with what was found out about it. */
struct message {
    enum severity severity;
    bool skip;
    size_t line;      /* of haproxy.cfg, 0: none named */
    struct span text; /* without level, process id and place */
};

/* What the summaries look like behind "config : ", or alone on standard output. */
static const char *const summaries[] = {
    "Error(s) found in configuration file", "Fatal errors found in configuration",
    "Errors found in configuration file",   "Warnings were found",
    "Configuration file is valid",          "Configuration file has no error",
};

static const struct {
    const char *name;
    enum severity severity;
    bool skip;
} levels[] = {
    {"[ALERT]", SEVERITY_ERROR, false},
    {"[EMERG]", SEVERITY_ERROR, false},
    {"[NOTICE]", SEVERITY_WARNING, true},
    {"[", SEVERITY_WARNING, false},
};

static bool
starts(struct span s, const char *with)
{
    size_t len = strlen(with);

    return s.len >= len && memcmp(s.s, with, len) == 0;
}

static struct span
skip_bytes(struct span s, size_t n)
{
    return (struct span){s.s + n, s.len - n};
}

static struct span
skip_any(struct span s, const char *bytes)
{
    while (s.len > 0 && strchr(bytes, *s.s) != NULL) {
        s = skip_bytes(s, 1);
    }
    return s;
}

/* Behind the first byte c; unchanged where there is none. */
static struct span
skip_past(struct span s, char c)
{
    const char *at = memchr(s.s, c, s.len);

    return at == NULL ? s : skip_bytes(s, (size_t)(at - s.s) + 1);
}

static const char *
find(struct span in, const char *what)
{
    return memmem(in.s, in.len, what, strlen(what));
}

static bool
is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == ':' || c == '-';
}

/* The number behind "haproxy.cfg:" in the first brackets that hold it, 0 when none does. */
static size_t
line_of(struct span s)
{
    const char *at = find(s, CONFIG_NAME);
    size_t line = 0;

    if (at == NULL) {
        return 0;
    }
    s = skip_bytes(s, (size_t)(at - s.s) + strlen(CONFIG_NAME));
    while (s.len > 0 && *s.s >= '0' && *s.s <= '9' && line < SIZE_MAX / 100) {
        line = line * 10 + (size_t)(*s.s - '0');
        s = skip_bytes(s, 1);
    }
    return line;
}

/* "parsing [.../haproxy.cfg:27] : text", "[haproxy.cfg:27] : text" -> line and text. */
static void
take_place(struct message *m)
{
    struct span s = m->text;

    if (starts(s, "parsing [") || starts(s, "Parsing [")) {
        s = skip_bytes(s, strlen("parsing "));
    }
    m->line = line_of(s);
    if (m->line != 0 && *s.s == '[') {
        m->text = skip_any(skip_past(s, ']'), " :");
    }
}

static bool
is_summary(struct span s)
{
    for (size_t i = 0; i < ARRAY_LEN(summaries); i++) {
        if (starts(s, summaries[i])) {
            return true;
        }
    }
    return false;
}

/* s: from the level to the end of the message. */
static struct message
message_of(struct span s)
{
    struct message m = {.severity = SEVERITY_WARNING};

    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        if (starts(s, levels[i].name)) {
            m.severity = levels[i].severity;
            m.skip = levels[i].skip;
            s = skip_any(skip_past(s, ']'), " ");
            break;
        }
    }
    if (starts(s, "(")) {
        s = skip_any(skip_past(s, ')'), " :");
    }
    if (starts(s, "config : ")) {
        s = skip_bytes(s, strlen("config : "));
    }
    m.text = s;
    m.skip = m.skip || is_summary(s);
    take_place(&m);
    return m;
}

/* Takes a message, its indented lines included, from the front of the rest. */
static struct span
next_message(struct span *rest)
{
    struct span all = *rest;
    size_t len = 0;

    do {
        const char *end = memchr(all.s + len, '\n', all.len - len);

        len = end == NULL ? all.len : (size_t)(end - all.s) + 1;
    } while (len < all.len && (all.s[len] == ' ' || all.s[len] == '\t'));
    *rest = skip_bytes(all, len);
    while (len > 0 && strchr(" \t\r\n", all.s[len - 1]) != NULL) {
        len--;
    }
    return (struct span){all.s, len};
}

static bool
is_called(const struct object *o, struct span name)
{
    return o->name.len == name.len && memcmp(o->name.s, name.s, name.len) == 0;
}

/* Line (from 1) at or after from that begins the section of an object; 0 when none does. */
static size_t
section_of(const struct rendered *r, enum kind kind, unsigned field, struct span name)
{
    for (size_t i = 0; i < r->line_count; i++) {
        const struct line_origin *l = &r->lines[i];

        if (l->kind == (int)kind && l->field == (int)field && is_called(l->object, name)) {
            return i + 1;
        }
    }
    return 0;
}

static size_t
server_in(const struct rendered *r, size_t pool_line, struct span name)
{
    for (size_t i = pool_line; i < r->line_count; i++) {
        const struct line_origin *l = &r->lines[i];

        if (l->kind == K_POOL && l->field == F_POOL_NAME) {
            break;
        }
        if (l->kind == K_SERVER && is_called(l->object, name)) {
            return i + 1;
        }
    }
    return pool_line;
}

/* The name at the front of s, which may be quoted. */
static struct span
name_at(struct span s)
{
    struct span name = skip_any(s, " '");

    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_byte(name.s[i])) {
            name.len = i;
        }
    }
    return name;
}

/* Behind a keyword that is a whole word in s, or an empty span. */
static struct span
after_word(struct span s, const char *word)
{
    const char *at;

    while ((at = find(s, word)) != NULL) {
        size_t end = (size_t)(at - s.s) + strlen(word);
        bool whole = (at == s.s || !is_name_byte(at[-1])) && end < s.len &&
                     (s.s[end] == ' ' || s.s[end] == '\'');

        s = skip_bytes(s, end);
        if (whole) {
            return s;
        }
    }
    return (struct span){s.s, 0};
}

static size_t
section_at(const struct rendered *r, enum kind kind, unsigned field, struct span after)
{
    struct span name = name_at(after);
    size_t line = 0;

    /* A name may end in a full stop or colon, and so may a clause. */
    while (name.len > 0 && (line = section_of(r, kind, field, name)) == 0 &&
           strchr(".:", name.s[name.len - 1]) != NULL) {
        name.len--;
    }
    return line;
}

static size_t
server_at(const struct rendered *r, struct span after, size_t pool_line)
{
    struct span name = name_at(after);
    struct span behind = skip_bytes(name, name.len);

    behind.len = after.len - (size_t)(behind.s - after.s);
    if (starts(behind, "/")) {
        pool_line = section_of(r, K_POOL, F_POOL_NAME, name);
        name = name_at(skip_bytes(behind, 1));
    }
    return pool_line == 0 ? 0 : server_in(r, pool_line, name);
}

/* The line that began what the text names: a server, a pool, a listener; 0 when none. */
static size_t
line_named(const struct rendered *r, struct span text)
{
    static const char *const pools[] = {"backend", "proxy", "Proxy"};
    static const char *const listeners[] = {"frontend", "proxy", "Proxy"};
    static const char *const servers[] = {"server", "Server"};
    size_t pool = 0;
    size_t line = 0;

    for (size_t i = 0; i < ARRAY_LEN(pools) && pool == 0; i++) {
        pool = section_at(r, K_POOL, F_POOL_NAME, after_word(text, pools[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(servers) && line == 0; i++) {
        struct span after = after_word(text, servers[i]);

        line = after.len == 0 ? 0 : server_at(r, after, pool);
    }
    if (line == 0) {
        line = pool;
    }
    for (size_t i = 0; i < ARRAY_LEN(listeners) && line == 0; i++) {
        line = section_at(r, K_LISTENER, F_LISTENER_NAME, after_word(text, listeners[i]));
    }
    return line;
}

/* The object with the certificate whose file the text names, or NULL. */
static const struct object *
certificate_in(const struct rendered *r, struct span text)
{
    const char *at = find(text, "crt/");
    struct span file =
        at == NULL ? (struct span){text.s, 0} : skip_bytes(text, (size_t)(at - text.s));

    for (size_t i = 0; i < r->count && file.len > 0; i++) {
        const struct artefact *a = &r->items[i];

        if (a->secret && a->object != NULL && starts(file, a->name)) {
            return a->object;
        }
    }
    return NULL;
}

/* Where the number of connections stands that the system has no descriptors for. HAProxy says
 * so when it starts, not when it checks, and names no line. */
static struct line_origin
limit_origin(const struct rendered *r, struct span text)
{
    for (size_t i = 0; find(text, "FD limit") != NULL && i < r->line_count; i++) {
        if (r->lines[i].kind == K_HAPROXY && r->lines[i].field == F_HAPROXY_MAXCONN) {
            return r->lines[i];
        }
    }
    return (struct line_origin){-1, -1, NULL};
}

static struct line_origin
origin_of(const struct rendered *r, const struct message *m)
{
    const struct object *certificate = certificate_in(r, m->text);
    size_t line;

    if (certificate != NULL) {
        return (struct line_origin){(int)certificate->kind, -1, certificate};
    }
    if (m->line != 0 && m->line <= r->line_count && r->lines[m->line - 1].object != NULL) {
        return r->lines[m->line - 1];
    }
    line = line_named(r, m->text);
    if (line == 0) {
        return limit_origin(r, m->text);
    }
    /* The message speaks of the object, not of what stands on that line. */
    return (struct line_origin){r->lines[line - 1].kind, -1, r->lines[line - 1].object};
}

/* The output is foreign: what is not text becomes a question mark or space. */
static void
clean(struct span s, char out[MESSAGE_MAX_BYTES + 1])
{
    size_t n = 0;

    while (s.len > 0) {
        uint32_t c = '?';
        size_t bytes = utf8_decode(s.s, s.len, &c);
        bool control = c < ' ' || (c >= 0x7f && c <= 0x9f);
        const char *put = control ? " " : bytes == 0 ? "?" : s.s;
        size_t put_bytes = control || bytes == 0 ? 1 : bytes;

        if (n + put_bytes > MESSAGE_MAX_BYTES) {
            break;
        }
        if (*put != ' ' || (n > 0 && out[n - 1] != ' ')) {
            memcpy(out + n, put, put_bytes);
            n += put_bytes;
        }
        s = skip_bytes(s, bytes == 0 ? 1 : bytes);
    }
    out[n] = '\0';
}

static void
add(const struct message *m, const struct rendered *r, struct problems *p)
{
    struct line_origin origin = origin_of(r, m);
    char text[MESSAGE_MAX_BYTES + 1];
    struct error pointer = {.msg = ""};
    struct problem where = {.pointer = pointer.msg};

    if (origin.object != NULL) {
        const struct schema_kind *k = schema_kind(origin.object->kind);

        where.kind = k->name;
        where.name = origin.object->name.s;
        if (origin.field >= 0) {
            (void)error_set(&pointer, ERR_INVALID, "/%s", k->fields[origin.field].name);
        }
    }
    clean(m->text, text);
    problems_add(p, m->severity, "haproxy", &where, "%s", text);
}

void
diag_haproxy(const char *output, const struct rendered *r, struct problems *p)
{
    struct span rest = {output, strlen(output)};

    while (rest.len > 0) {
        struct span s = next_message(&rest);
        struct message m = message_of(s);

        if (s.len > 0 && !m.skip) {
            add(&m, r, p);
        }
    }
}
