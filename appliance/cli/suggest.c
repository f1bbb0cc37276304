/* SPDX-License-Identifier: Apache-2.0 */
/* Which command a mistyped word may stand for. */
#include <string.h>

#include "cli/cli.h"

#define WORD_MAX  32
#define FAR       (WORD_MAX + 1)
#define NEAR_MOST 2 /* letters that are wrong, missing, too many or swapped */
#define TEXT_MAX  1024

static int
least(int a, int b)
{
    return a < b ? a : b;
}

/* How many letters are to be changed, put in, taken out or swapped with the next. */
static int
distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);

    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(
                least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[n][m];
}

/* FAR: it is another word. */
static int
distance_to(const char *word, const struct command *k)
{
    size_t len = strlen(word);

    if (len > WORD_MAX || strlen(k->name) > WORD_MAX) {
        return FAR;
    }
    int d = distance(word, k->name);
    return d <= NEAR_MOST && d < (int)len ? d : FAR;
}

int
cli_no_command(const struct cli *c, const char *word)
{
    CLEANUP(buf_fini) struct buf near;
    int nearest = FAR;

    buf_init(&near, TEXT_MAX);
    for (const struct command *k = cli_commands; k->name != NULL; k++) {
        nearest = least(nearest, distance_to(word, k));
    }
    for (const struct command *k = cli_commands; k->name != NULL && nearest < FAR; k++) {
        if (distance_to(word, k) == nearest) {
            buf_printf(&near, "%s\"%s\"", near.len > 0 ? " or " : "", k->name);
        }
    }
    return cli_misused(
        c, "there is no command \"%s\"%s%s%s", word, near.len > 0 ? ": did you mean " : "",
        buf_str(&near), near.len > 0 ? "?" : "");
}
