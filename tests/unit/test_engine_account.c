/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/engine_lab.h"

#define PASSWORD "correct horse battery"
#define OTHER    "staple of another kind"

/* ---- short forms ---- */

static void
token_path(const struct engine_lab *l, char out[512])
{
    (void)snprintf(out, 512, "%s/data/setup-token", l->fake.state_dir);
}

static void
read_token(const struct engine_lab *l, struct buf *out)
{
    char path[512];

    token_path(l, path);
    buf_init(out, 256);
    assert_int_equal(file_read_at(AT_FDCWD, path, out, NULL), ERR_OK);
}

static err_t
set_up(struct engine_lab *l, const char *token, const char *password)
{
    problems_init(&l->problems, l->arena);
    return account_setup(l->en, token, "maria", password, &l->problems, &l->error);
}

static void
must_set_up(struct engine_lab *l)
{
    struct buf token;

    read_token(l, &token);
    assert_int_equal(set_up(l, buf_str(&token), PASSWORD), ERR_OK);
    buf_fini(&token);
}

static err_t
sign_in(struct engine_lab *l, const char *password, const char *client, struct buf *ret_token)
{
    struct account_login form = {.name = "maria", .password = password, .client = client};
    struct session session;
    int64_t retry_s = 0;

    buf_init(ret_token, 256);
    return account_login(l->en, &form, ret_token, &session, &retry_s, &l->error);
}

static err_t
session(struct engine_lab *l, const struct buf *token)
{
    struct session found;

    return account_session(l->en, buf_str(token), &found, &l->error);
}

/* A write of an administrator, as the API does it: merge, with the password hashed. */
static err_t
write_admin(struct engine_lab *l, const char *name, json_t *body)
{
    static const struct actor who = {"admin maria"};
    struct change_set set;
    err_t code;

    problems_init(&l->problems, l->arena);
    assert_int_equal(account_hash_password(body, &l->error), ERR_OK);
    change_set_init(&set);
    assert_int_equal(
        change_set_add(
            &set,
            (struct change){.op = CHANGE_MERGE, .kind = K_ADMIN, .name = name, .body = body},
            NULL),
        ERR_OK);
    code = edit_draft(l->en, &set, &who, &l->problems, &l->error);
    change_set_fini(&set);
    return code;
}

/* ---- setup ---- */

static void
a_fresh_node_waits_with_a_token(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;
    struct stat st;
    char path[512];

    assert_false(account_configured(l->en));
    token_path(l, path);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    read_token(l, &token);
    assert_int_equal(token.len, 44);
    buf_fini(&token);
}

static void
the_token_is_kept_over_a_restart(void **state)
{
    struct engine_lab *l = *state;
    struct buf before;
    struct buf after;

    read_token(l, &before);
    engine_lab_close(l);
    engine_lab_start(l);
    read_token(l, &after);
    assert_string_equal(buf_str(&before), buf_str(&after));
    buf_fini(&before);
    buf_fini(&after);
}

static void
setup_makes_the_first_administrator_and_no_second(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;
    char path[512];

    read_token(l, &token);
    assert_int_equal(set_up(l, "wrong", PASSWORD), ERR_DENIED);
    assert_int_equal(set_up(l, "", PASSWORD), ERR_DENIED);
    assert_int_equal(set_up(l, buf_str(&token), "too short"), ERR_INVALID);
    assert_string_equal(l->problems.items[0].pointer, "/password");
    assert_false(account_configured(l->en));
    assert_int_equal(set_up(l, buf_str(&token), PASSWORD), ERR_OK);
    assert_true(account_configured(l->en));
    assert_int_equal(set_up(l, buf_str(&token), PASSWORD), ERR_CONFLICT);
    token_path(l, path);
    assert_false(file_exists_at(AT_FDCWD, path));
    engine_lab_close(l);
    engine_lab_start(l);
    assert_false(file_exists_at(AT_FDCWD, path));
    assert_int_equal(set_up(l, buf_str(&token), PASSWORD), ERR_CONFLICT);
    buf_fini(&token);
}

/* C014 */
static void
white_space_around_the_token_does_not_matter(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;
    char text[128];

    read_token(l, &token);
    (void)snprintf(text, sizeof text, " \t%.43s\r\n", buf_str(&token));
    assert_int_equal(set_up(l, text, PASSWORD), ERR_OK);
    buf_fini(&token);
}

#define SETUPS 4

struct setup_try {
    struct engine *en;
    const char *token;
    err_t code;
};

static void *
try_setup(void *ctx)
{
    struct setup_try *t = ctx;
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems p;

    problems_init(&p, arena);
    t->code = account_setup(t->en, t->token, "maria", PASSWORD, &p, NULL);
    arena_free(arena);
    return NULL;
}

/* C167 */
static void
of_setups_at_once_one_wins(void **state)
{
    struct engine_lab *l = *state;
    struct setup_try tries[SETUPS];
    pthread_t threads[SETUPS];
    struct buf token;
    int won = 0;

    read_token(l, &token);
    for (int i = 0; i < SETUPS; i++) {
        tries[i] = (struct setup_try){l->en, buf_str(&token), ERR_INTERNAL};
        assert_int_equal(pthread_create(&threads[i], NULL, try_setup, &tries[i]), 0);
    }
    for (int i = 0; i < SETUPS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(tries[i].code == ERR_OK || tries[i].code == ERR_CONFLICT);
        won += tries[i].code == ERR_OK ? 1 : 0;
    }
    assert_int_equal(won, 1);
    buf_fini(&token);
}

/* ---- sessions ---- */

static void
the_right_password_opens_a_session(void **state)
{
    struct engine_lab *l = *state;
    struct account_login form = {.name = "maria", .password = PASSWORD, .client = "192.0.2.1"};
    struct session opened;
    struct session found;
    struct buf token;
    int64_t retry_s = 0;

    must_set_up(l);
    buf_init(&token, 256);
    assert_int_equal(account_login(l->en, &form, &token, &opened, &retry_s, &l->error), ERR_OK);
    assert_int_equal(token.len, 43);
    assert_string_equal(opened.admin, "maria");
    assert_true(strlen(opened.csrf) >= 32);
    assert_int_equal(account_session(l->en, buf_str(&token), &found, &l->error), ERR_OK);
    assert_string_equal(found.admin, "maria");
    assert_string_equal(found.csrf, opened.csrf);
    assert_int_equal(account_session(l->en, "", &found, &l->error), ERR_DENIED);
    assert_int_equal(account_session(l->en, "x", &found, &l->error), ERR_DENIED);
    buf_fini(&token);
}

static void
a_session_outlives_a_restart_and_ends_by_logout(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;

    must_set_up(l);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &token), ERR_OK);
    engine_lab_close(l);
    engine_lab_start(l);
    assert_int_equal(session(l, &token), ERR_OK);
    assert_int_equal(account_logout(l->en, buf_str(&token), &l->error), ERR_OK);
    assert_int_equal(session(l, &token), ERR_DENIED);
    engine_lab_close(l);
    engine_lab_start(l);
    assert_int_equal(session(l, &token), ERR_DENIED);
    buf_fini(&token);
}

static void
pass(struct engine_lab *l, int64_t ms)
{
    l->mono_stands_ms = clock_mono_ms(&clock_system) + ms;
    l->wall_shift_ms = ms;
}

static void
the_last_use_is_stored_now_and_then(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;
    int64_t idle_ms = l->tunables.session_idle_ms;

    must_set_up(l);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &token), ERR_OK);
    pass(l, idle_ms - 60000);
    assert_int_equal(session(l, &token), ERR_OK);
    engine_lab_close(l);
    pass(l, idle_ms + 60000);
    engine_lab_start(l);
    assert_int_equal(session(l, &token), ERR_OK);
    pass(l, 2 * idle_ms + 61000);
    assert_int_equal(session(l, &token), ERR_DENIED);
    buf_fini(&token);
}

/* C146 */
static void
sessions_end_when_the_password_changes(void **state)
{
    struct engine_lab *l = *state;
    struct buf first;
    struct buf second;

    must_set_up(l);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &first), ERR_OK);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &second), ERR_OK);
    assert_int_equal(write_admin(l, "maria", json_pack("{s:s}", "note", "on call")), ERR_OK);
    assert_int_equal(session(l, &first), ERR_OK);
    assert_int_equal(write_admin(l, "maria", json_pack("{s:s}", "password", OTHER)), ERR_OK);
    assert_int_equal(session(l, &first), ERR_DENIED);
    assert_int_equal(session(l, &second), ERR_DENIED);
    engine_lab_close(l);
    engine_lab_start(l);
    assert_int_equal(session(l, &first), ERR_DENIED);
    buf_fini(&first);
    buf_fini(&second);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &first), ERR_DENIED);
    buf_fini(&first);
    assert_int_equal(sign_in(l, OTHER, "192.0.2.1", &first), ERR_OK);
    assert_int_equal(session(l, &first), ERR_OK);
    buf_fini(&first);
}

static void
sessions_end_with_the_name_and_with_the_administrator(void **state)
{
    struct engine_lab *l = *state;
    struct buf token;

    must_set_up(l);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.1", &token), ERR_OK);
    assert_int_equal(write_admin(l, "maria", json_pack("{s:s}", "name", "eva")), ERR_OK);
    assert_int_equal(session(l, &token), ERR_DENIED);
    assert_int_equal(write_admin(l, "eva", json_pack("{s:s}", "name", "maria")), ERR_OK);
    assert_int_equal(session(l, &token), ERR_DENIED);
    buf_fini(&token);
}

static void
the_last_administrator_stays(void **state)
{
    struct engine_lab *l = *state;

    must_set_up(l);
    assert_int_equal(
        engine_lab_edit(l, "[{'op': 'delete', 'kind': 'admin', 'name': 'maria'}]"),
        ERR_CONFLICT);
    assert_true(account_configured(l->en));
}

/* C148 */
static void
bad_tries_slow_down_one_client_only(void **state)
{
    struct engine_lab *l = *state;
    struct account_login form = {.name = "maria", .password = PASSWORD, .client = "192.0.2.1"};
    struct session opened;
    struct buf token;
    int64_t retry_s = 0;

    must_set_up(l);
    /* A slow machine must not outlast the wait of a second. */
    l->mono_stands_ms = clock_mono_ms(&clock_system);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sign_in(l, OTHER, "192.0.2.1", &token), ERR_DENIED);
        buf_fini(&token);
    }
    buf_init(&token, 256);
    assert_int_equal(
        account_login(l->en, &form, &token, &opened, &retry_s, &l->error), ERR_BUSY);
    assert_int_equal(retry_s, 1);
    buf_fini(&token);
    assert_int_equal(sign_in(l, PASSWORD, "192.0.2.2", &token), ERR_OK);
    buf_fini(&token);
    l->mono_stands_ms = 0;
}

static void
an_unknown_name_is_refused_like_a_wrong_password(void **state)
{
    struct engine_lab *l = *state;
    struct account_login form = {.name = "nobody", .password = PASSWORD, .client = "192.0.2.1"};
    struct session opened;
    struct buf token;
    int64_t retry_s = 0;
    int64_t from_ms;

    must_set_up(l);
    buf_init(&token, 256);
    from_ms = clock_mono_ms(&clock_system);
    assert_int_equal(
        account_login(l->en, &form, &token, &opened, &retry_s, &l->error), ERR_DENIED);
    /* A hash was computed all the same. */
    assert_true(clock_mono_ms(&clock_system) - from_ms >= 10);
    assert_string_equal(l->error.msg, "name or password is wrong");
    assert_int_equal(token.len, 0);
    buf_fini(&token);
}

/* ---- keys ---- */

static err_t
make_key(struct engine_lab *l, json_t *body, struct buf *ret_key)
{
    err_t code;

    problems_init(&l->problems, l->arena);
    buf_init(ret_key, 256);
    code = account_key_create(
        l->en, body, &(struct actor){"admin maria"}, ret_key, &l->problems, &l->error);
    json_decref(body);
    return code;
}

static void
a_key_opens_under_its_name_until_it_is_deleted(void **state)
{
    struct engine_lab *l = *state;
    struct key_grant grant;
    const struct object *stored;
    struct buf key;
    char text[128];

    assert_int_equal(make_key(l, json_pack("{s:s}", "name", "deploy"), &key), ERR_OK);
    assert_int_equal(key.len, 47);
    assert_memory_equal(key.data, "lsk_", 4);
    stored = engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy");
    assert_null(strstr(stored->canonical, buf_str(&key)));
    assert_int_equal(account_key(l->en, buf_str(&key), l->arena, &grant, &l->error), ERR_OK);
    assert_string_equal(grant.name, "deploy");
    assert_int_equal(grant.scope, V_AUTOMATION_KEY_SCOPE_FULL);
    (void)snprintf(text, sizeof text, " %s\r\n", buf_str(&key));
    assert_int_equal(account_key(l->en, text, l->arena, &grant, &l->error), ERR_OK);
    key.data[20] = key.data[20] == 'A' ? 'B' : 'A';
    assert_int_equal(
        account_key(l->en, buf_str(&key), l->arena, &grant, &l->error), ERR_DENIED);
    assert_int_equal(account_key(l->en, "lsk_", l->arena, &grant, &l->error), ERR_DENIED);
    assert_int_equal(account_key(l->en, "", l->arena, &grant, &l->error), ERR_DENIED);
    assert_int_equal(
        engine_lab_edit(l, "[{'op': 'delete', 'kind': 'automation_key', 'name': 'deploy'}]"),
        ERR_OK);
    assert_int_equal(account_key(l->en, text, l->arena, &grant, &l->error), ERR_DENIED);
    buf_fini(&key);
}

static void
a_key_that_cannot_be_made_is_not_shown(void **state)
{
    struct engine_lab *l = *state;
    struct buf key;

    assert_int_equal(make_key(l, json_pack("{s:s}", "name", "deploy"), &key), ERR_OK);
    buf_fini(&key);
    assert_int_equal(make_key(l, json_pack("{s:s}", "name", "deploy"), &key), ERR_CONFLICT);
    assert_int_equal(key.len, 0);
    buf_fini(&key);
    assert_int_equal(make_key(l, json_pack("{s:i}", "name", 7), &key), ERR_INVALID);
    assert_true(l->problems.errors > 0);
    buf_fini(&key);
}

static void
a_key_without_a_hash_opens_nothing(void **state)
{
    struct engine_lab *l = *state;
    struct key_grant grant;

    assert_int_equal(
        engine_lab_edit(
            l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]"),
        ERR_OK);
    assert_int_equal(
        account_key(
            l->en, "lsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", l->arena, &grant,
            &l->error),
        ERR_DENIED);
}

static bool
reaches(struct engine_lab *l, const struct key_grant *grant, enum kind kind, const char *name)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return account_reaches(grant, v, engine_lab_head_object(l, kind, name));
}

static void
a_bound_key_reaches_what_is_in_its_pools_alone(void **state)
{
    struct engine_lab *l = *state;
    struct key_grant grant;
    struct buf key;

    engine_lab_must(
        l, "[" LAB_SERVER("own") ", " LAB_SERVER("shared") ", " LAB_SERVER("loose") "]");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'shared', 'body': {'port': 81}}]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'app', 'members': "
           "[{'server': 'own'}, {'server': 'shared'}]}}, "
           "{'op': 'create', 'kind': 'pool', 'body': {'name': 'other', 'members': "
           "[{'server': 'shared'}]}}]");
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(
        make_key(
            l,
            json_pack("{s:s, s:s, s:[s]}", "name", "ops", "scope", "operate", "pools", "app"),
            &key),
        ERR_OK);
    assert_int_equal(account_key(l->en, buf_str(&key), l->arena, &grant, &l->error), ERR_OK);
    assert_int_equal(grant.scope, V_AUTOMATION_KEY_SCOPE_OPERATE);
    assert_int_equal(grant.pool_count, 1);
    assert_true(reaches(l, &grant, K_SERVER, "own"));
    assert_false(reaches(l, &grant, K_SERVER, "shared"));
    assert_false(reaches(l, &grant, K_SERVER, "loose"));
    assert_true(reaches(l, &grant, K_POOL, "app"));
    assert_false(reaches(l, &grant, K_POOL, "other"));
    assert_false(reaches(l, &grant, K_HAPROXY, "haproxy"));
    assert_true(reaches(l, &(struct key_grant){.name = "free"}, K_SERVER, "loose"));
    buf_fini(&key);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(a_fresh_node_waits_with_a_token),
        ENGINE_LAB_TEST(the_token_is_kept_over_a_restart),
        ENGINE_LAB_TEST(setup_makes_the_first_administrator_and_no_second),
        ENGINE_LAB_TEST(white_space_around_the_token_does_not_matter),
        ENGINE_LAB_TEST(of_setups_at_once_one_wins),
        ENGINE_LAB_TEST(the_right_password_opens_a_session),
        ENGINE_LAB_TEST(a_session_outlives_a_restart_and_ends_by_logout),
        ENGINE_LAB_TEST(the_last_use_is_stored_now_and_then),
        ENGINE_LAB_TEST(sessions_end_when_the_password_changes),
        ENGINE_LAB_TEST(sessions_end_with_the_name_and_with_the_administrator),
        ENGINE_LAB_TEST(the_last_administrator_stays),
        ENGINE_LAB_TEST(bad_tries_slow_down_one_client_only),
        ENGINE_LAB_TEST(an_unknown_name_is_refused_like_a_wrong_password),
        ENGINE_LAB_TEST(a_key_opens_under_its_name_until_it_is_deleted),
        ENGINE_LAB_TEST(a_key_that_cannot_be_made_is_not_shown),
        ENGINE_LAB_TEST(a_key_without_a_hash_opens_nothing),
        ENGINE_LAB_TEST(a_bound_key_reaches_what_is_in_its_pools_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
