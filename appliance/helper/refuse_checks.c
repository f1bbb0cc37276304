/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/running.h"
#include "helper/refuse_tables.h"

#define SHOWN_BYTES 64
#define NAME_BYTES  256

err_t
refuse_word(const char *word, const char *reason, struct error *e)
{
    char shown[SHOWN_BYTES];
    size_t n = 0;

    for (; word[n] != '\0' && n + 1 < sizeof shown; n++) {
        shown[n] = word[n] >= ' ' && word[n] <= '~' ? word[n] : '?';
    }
    shown[n] = '\0';
    return error_set(e, ERR_DENIED, "\"%s\" %s", shown, reason);
}

/* What the system trusts, read by HAProxy from where OpenSSL keeps it. */
#define SYSTEM_CA "@system-ca"

static err_t
check_any_file(const struct refuse_line *l, const char *name, struct error *e)
{
    if (!l->rooted) {
        return refuse_word(name, "is no file of this generation before default-path", e);
    }
    return staged_has(l->in->files, name)
               ? ERR_OK
               : refuse_word(name, "is no file of this generation", e);
}

static err_t
check_file(const struct refuse_line *l, const char *name, struct error *e)
{
    return strcmp(name, RUNNING_MAP) == 0 ? refuse_word(name, REFUSE_MAP_ALONE, e)
                                          : check_any_file(l, name, e);
}

static const char *
word_at(const struct refuse_line *l, size_t i)
{
    return i < l->count ? l->words[i] : "";
}

static bool
is_in(const char *word, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, word) == 0) {
            return true;
        }
    }
    return false;
}

/* The words after each of the keywords name files. */
static err_t
check_files_after(
    const struct refuse_line *l, size_t first, const char *const *keywords, struct error *e)
{
    for (size_t i = first; i + 1 < l->count; i++) {
        bool system =
            strcmp(l->words[i], "ca-file") == 0 && strcmp(l->words[i + 1], SYSTEM_CA) == 0;

        if (is_in(l->words[i], keywords) && !system) {
            err_t code = check_file(l, l->words[i + 1], e);

            if (code != ERR_OK) {
                return code;
            }
        }
    }
    return ERR_OK;
}

/* "@" stands between a family and an address; without a family a "/" begins the path of a
 * socket. HAProxy replaces "$" and a name here, in whatever quotes: some of the variables are
 * its own and hold what the configuration says. */
static err_t
check_address(const char *word, size_t bytes, struct error *e)
{
    static const char *const families[] = {
        "ipv4", "ipv6", "udp", "udp4", "udp6", "tcp", "tcp4", "tcp6", "quic4", "quic6", NULL,
    };
    char address[NAME_BYTES];
    char *family = address;
    char *at;

    if (bytes >= sizeof address) {
        return refuse_word(word, "is too long for an address", e);
    }
    memcpy(address, word, bytes);
    address[bytes] = '\0';
    if (strchr(address, '$') != NULL) {
        return refuse_word(word, "holds an environment variable", e);
    }
    while ((at = strchr(family, '@')) != NULL) {
        *at = '\0';
        if (!is_in(family, families)) {
            return refuse_word(word, "is no internet address", e);
        }
        family = at + 1;
    }
    return family[0] == '/' ? refuse_word(word, "is no internet address", e) : ERR_OK;
}

static bool
is_own_file(const struct refuse_line *l, const char *word, const char *name)
{
    size_t dir = strlen(l->in->run_dir);

    return strncmp(word, l->in->run_dir, dir) == 0 && word[dir] == '/' &&
           strcmp(word + dir + 1, name) == 0;
}

static bool
is_own_socket(const struct refuse_line *l, const char *word, const char *name)
{
    return is_own_file(l, strncmp(word, "unix@", 5) == 0 ? word + 5 : word, name);
}

err_t
refuse_check_bind(const struct refuse_line *l, struct error *e)
{
    static const char *const files[] = {
        "ca-file",  "ca-sign-file", "ca-verify-file",  "crl-file", "crt",
        "crt-list", "default-crt",  "tls-ticket-keys", NULL,
    };
    bool addressed = strcmp(l->words[0], "bind") == 0;
    const char *p = word_at(l, 1);

    if (addressed && !is_own_socket(l, p, "probe.sock")) {
        while (*p != '\0') {
            size_t n = strcspn(p, ",");
            err_t code = check_address(p, n, e);

            if (code != ERR_OK) {
                return code;
            }
            p += n + (p[n] == ',' ? 1 : 0);
        }
    }
    for (size_t i = 1; i < l->count; i++) {
        if (strcmp(l->words[i], "namespace") == 0) {
            return refuse_word(l->words[i], "leaves the network of this node", e);
        }
    }
    return check_files_after(l, addressed ? 2 : 1, files, e);
}

static err_t
check_addresses_after(const struct refuse_line *l, size_t first, struct error *e)
{
    static const char *const keywords[] = {"addr",   "agent-addr", "socks4",
                                           "source", "usesrc",     NULL};

    for (size_t i = first; i + 1 < l->count; i++) {
        if (is_in(l->words[i], keywords)) {
            const char *word = l->words[i + 1];
            err_t code = check_address(word, strlen(word), e);

            if (code != ERR_OK) {
                return code;
            }
        }
    }
    return ERR_OK;
}

/* Any of the first words may be the address; names of servers hold neither "@" nor "/". */
err_t
refuse_check_server(const struct refuse_line *l, struct error *e)
{
    static const char *const files[] = {"ca-file", "crl-file", "crt", NULL};
    err_t code;

    for (size_t i = 1; i < l->count; i++) {
        if (strcmp(l->words[i], "namespace") == 0) {
            return refuse_word(l->words[i], "leaves the network of this node", e);
        }
        if (i > 3) {
            continue;
        }
        code = check_address(l->words[i], strlen(l->words[i]), e);
        if (code != ERR_OK) {
            return code;
        }
    }
    code = check_addresses_after(l, 1, e);
    return code != ERR_OK ? code : check_files_after(l, 1, files, e);
}

err_t
refuse_check_health(const struct refuse_line *l, struct error *e)
{
    return strcmp(word_at(l, 1), "connect") == 0 ? check_addresses_after(l, 2, e) : ERR_OK;
}

err_t
refuse_check_chroot(const struct refuse_line *l, struct error *e)
{
    return l->count == 2 && strcmp(l->words[1], "/var/lib/haproxy") == 0
               ? ERR_OK
               : refuse_word(word_at(l, 1), "is not HAProxy's empty directory", e);
}

err_t
refuse_check_default_path(const struct refuse_line *l, struct error *e)
{
    return l->count == 2 && strcmp(l->words[1], "config") == 0
               ? ERR_OK
               : refuse_word(word_at(l, 1), "moves files out of the generation", e);
}

err_t
refuse_check_identity(const struct refuse_line *l, struct error *e)
{
    return l->count == 2 && strcmp(l->words[1], "haproxy") == 0
               ? ERR_OK
               : refuse_word(word_at(l, 1), "is not whom HAProxy runs as", e);
}

err_t
refuse_check_file(const struct refuse_line *l, struct error *e)
{
    return check_file(l, word_at(l, 1), e);
}

err_t
refuse_check_errorfile(const struct refuse_line *l, struct error *e)
{
    return check_file(l, word_at(l, 2), e);
}

err_t
refuse_check_filter(const struct refuse_line *l, struct error *e)
{
    static const char *const allowed[] = {
        "bwlim-in", "bwlim-out", "cache", "compression", NULL,
    };

    return is_in(word_at(l, 1), allowed)
               ? ERR_OK
               : refuse_word(word_at(l, 1), "is a filter that reads another configuration", e);
}

err_t
refuse_check_option(const struct refuse_line *l, struct error *e)
{
    return strcmp(word_at(l, 1), "external-check") == 0
               ? refuse_word(l->words[1], "runs programs", e)
               : ERR_OK;
}

err_t
refuse_check_log(const struct refuse_line *l, struct error *e)
{
    static const char *const allowed[] = {"/dev/log", "global", "stderr", "stdout", NULL};
    const char *target = word_at(l, 1);

    return is_in(target, allowed) ? ERR_OK : check_address(target, strlen(target), e);
}

err_t
refuse_check_state_file(const struct refuse_line *l, struct error *e)
{
    return is_own_file(l, word_at(l, 1), SERVER_STATE_FILE)
               ? ERR_OK
               : refuse_word(word_at(l, 1), "is not where server states are kept", e);
}

err_t
refuse_check_state_name(const struct refuse_line *l, struct error *e)
{
    return strchr(word_at(l, 1), '/') == NULL
               ? ERR_OK
               : refuse_word(l->words[1], "is not where server states are kept", e);
}

err_t
refuse_check_stats(const struct refuse_line *l, struct error *e)
{
    static const char *const plain[] = {"maxconn", "timeout", NULL};
    static const char *const with_value[] = {"group", "level", NULL};
    const char *verb = word_at(l, 1);

    if (is_in(verb, plain)) {
        return ERR_OK;
    }
    if (strcmp(verb, "socket") != 0) {
        return refuse_word(verb, "is not allowed here", e);
    }
    if (!is_own_socket(l, word_at(l, 2), "haproxy.sock")) {
        return refuse_word(word_at(l, 2), "is not the admin socket", e);
    }
    for (size_t i = 3; i < l->count; i += 2) {
        const char *value = word_at(l, i + 1);
        bool right = is_in(l->words[i], with_value);

        if (strcmp(l->words[i], "mode") == 0) {
            right = strcmp(value, "660") == 0 || strcmp(value, "600") == 0;
        } else if (strcmp(l->words[i], "expose-fd") == 0) {
            right = strcmp(value, "listeners") == 0;
        }
        if (!right) {
            return refuse_word(l->words[i], "is not allowed for the admin socket", e);
        }
    }
    return ERR_OK;
}

/* "add-acl(FILE) ..." and its like: files that rules change at run time. HAProxy knows them by
 * their first letters and takes what stands behind one more for the name. */
static err_t
check_file_action(const struct refuse_line *l, const char *action, struct error *e)
{
    static const char *const actions[] = {"add-acl", "del-acl", "set-map", "del-map"};
    char name[NAME_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        size_t n = strlen(actions[i]);
        size_t len = strlen(action);

        if (strncmp(action, actions[i], n) != 0) {
            continue;
        }
        if (action[n] != '(' || action[len - 1] != ')' || len - n - 1 > sizeof name) {
            return refuse_word(action, "names no file of this generation", e);
        }
        memcpy(name, action + n + 1, len - n - 2);
        name[len - n - 2] = '\0';
        return check_file(l, name, e);
    }
    return ERR_OK;
}

/* An answer of our own: its file is sent as it is, but that of "lf-file" is evaluated. */
static err_t
check_answer(const struct refuse_line *l, struct error *e)
{
    static const char *const files[] = {"errorfile", "file", NULL};

    for (size_t i = 1; i < l->count; i++) {
        if (strcmp(l->words[i], "lf-file") == 0) {
            return refuse_word(l->words[i], "evaluates what is in a file", e);
        }
    }
    return check_files_after(l, 1, files, e);
}

/* http-request ACTION, tcp-request CONTENT ACTION, http-error. */
err_t
refuse_check_rule(const struct refuse_line *l, struct error *e)
{
    static const char *const answers[] = {"deny", "return", "tarpit", NULL};
    bool answered = strcmp(l->words[0], "http-error") == 0 || is_in(word_at(l, 1), answers);
    size_t last = strncmp(l->words[0], "http-", 5) == 0 ? 1 : 2;

    for (size_t i = 1; i < l->count && i <= last; i++) {
        err_t code = check_file_action(l, l->words[i], e);

        if (code != ERR_OK) {
            return code;
        }
        if (strncmp(l->words[i], "lua.", 4) == 0) {
            return refuse_word(l->words[i], "runs code", e);
        }
        if (strcmp(l->words[i], "use-service") == 0 &&
            strcmp(word_at(l, i + 1), "prometheus-exporter") != 0) {
            return refuse_word(l->words[i], "runs code", e);
        }
    }
    return answered ? check_answer(l, e) : ERR_OK;
}

static bool
is_identifier(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '_' || c == '.' || c == ':' || c == '-';
}

/* p stands at the first character of an identifier. Only "map" takes any text for a value, so
 * the one of RUNNING_MAP may become another without a check (weights.h). */
static err_t
check_converter(const struct refuse_line *l, const char *p, size_t n, struct error *e)
{
    char name[NAME_BYTES];
    size_t len;

    if (n == strlen("jwt_verify") && memcmp(p, "jwt_verify", n) == 0) {
        return refuse_word(p, "names a key file", e);
    }
    if (memcmp(p, "map", n < 3 ? n : 3) != 0 || n < 3 || (n > 3 && p[3] != '_')) {
        return ERR_OK;
    }
    p += n + 1;
    len = strcspn(p, ",)");
    if (len >= sizeof name) {
        return refuse_word(p, "is no file of this generation", e);
    }
    memcpy(name, p, len);
    name[len] = '\0';
    return n == 3 ? check_any_file(l, name, e) : check_file(l, name, e);
}

/* Converters that take a file may stand in any word that holds an expression. */
static err_t
check_expressions(const struct refuse_line *l, const char *word, struct error *e)
{
    const char *p = word;

    while (*p != '\0') {
        size_t n = 0;

        while (is_identifier(p[n])) {
            n++;
        }
        if (n > 0 && p[n] == '(') {
            err_t code = check_converter(l, p, n, e);

            if (code != ERR_OK) {
                return code;
            }
        }
        p += n > 0 ? n : 1;
    }
    return ERR_OK;
}

/* Where a user's text may stand, which only looks like an expression. */
static const struct text_place {
    const char *keyword, *action;
    size_t at;
    bool regex; /* never evaluated; else a format, which is evaluated behind a "%" */
} text_places[] = {
    {"http-after-response", "add-header", 3, false},
    {"http-after-response", "set-header", 3, false},
    {"http-request", "add-header", 3, false},
    {"http-request", "redirect", 3, false},
    {"http-request", "replace-path", 2, true},
    {"http-request", "replace-path", 3, false},
    {"http-request", "set-header", 3, false},
    {"http-request", "set-path", 2, false},
};

static const struct text_place *
text_place_of(const struct refuse_line *l, size_t i)
{
    for (size_t n = 0; n < ARRAY_LEN(text_places); n++) {
        const struct text_place *p = &text_places[n];

        if (p->at == i && strcmp(p->keyword, l->words[0]) == 0 &&
            strcmp(p->action, word_at(l, 1)) == 0) {
            return p;
        }
    }
    return NULL;
}

static bool
is_text(const struct refuse_line *l, size_t i)
{
    const struct text_place *place = text_place_of(l, i);
    const char *word = l->words[i];

    if (place == NULL || place->regex) {
        return place != NULL;
    }
    while ((word = strchr(word, '%')) != NULL) {
        if (word[1] != '%') {
            return false;
        }
        word += 2;
    }
    return true;
}

/* Patterns "-f FILE" of a test whose first flag may stand at i, up to its end. */
static err_t
check_patterns(const struct refuse_line *l, size_t i, bool braces, struct error *e)
{
    for (; i < l->count && strcmp(l->words[i], "--") != 0; i++) {
        if (braces && strcmp(l->words[i], "}") == 0) {
            return ERR_OK;
        }
        if (strcmp(l->words[i], "-f") == 0) {
            err_t code = check_file(l, word_at(l, i + 1), e);

            if (code != ERR_OK) {
                return code;
            }
        }
    }
    return ERR_OK;
}

err_t
refuse_check_every(const struct refuse_line *l, struct error *e)
{
    err_t code = strcmp(l->words[0], "acl") == 0 ? check_patterns(l, 3, false, e) : ERR_OK;

    for (size_t i = 1; code == ERR_OK && i < l->count; i++) {
        const char *word = l->words[i] + strspn(l->words[i], "!");

        if (strcmp(word, "{") == 0) {
            code = check_patterns(l, i + 2, true, e);
        }
        if (code == ERR_OK && !is_text(l, i)) {
            code = check_expressions(l, l->words[i], e);
        }
    }
    return code;
}
