/* SPDX-License-Identifier: Apache-2.0 */
/* error/<code>.http: complete answers, as HAProxy sends them when no server can. */
#include "render/quote.h"
#include "render/rendered.h"
#include "render/writer.h"

const int error_page_codes[ERROR_PAGE_COUNT] = {502, 503, 504};

static const char *const reasons[ERROR_PAGE_COUNT] = {
    "Bad Gateway", "Service Unavailable", "Gateway Timeout"};

static void
put_page(struct buf *out, struct text title, struct text text)
{
    PUT(out, "<!DOCTYPE html>\n"
             "<html>\n"
             "<head>\n"
             "<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"robots\" content=\"noindex\">\n"
             "<title>");
    quote_html(out, title);
    PUT(out, "</title>\n"
             "<style>\n"
             ":root { color-scheme: light dark; }\n"
             "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto;"
             " padding: 0 1.5rem; }\n"
             "</style>\n"
             "</head>\n"
             "<body>\n"
             "<h1>");
    quote_html(out, title);
    PUT(out, "</h1>\n<p>");
    quote_html(out, text);
    PUT(out, "</p>\n</body>\n</html>\n");
}

void
error_page_write(struct rendered *r, struct layout *p)
{
    CLEANUP(buf_fini) struct buf page;

    buf_init(&page, RENDER_MAX_BYTES);
    put_page(
        &page, fields_text(p->haproxy, F_HAPROXY_ERROR_TITLE),
        fields_text(p->haproxy, F_HAPROXY_ERROR_TEXT));
    for (size_t i = 0; i < ERROR_PAGE_COUNT; i++) {
        char code[] = {'5', '0', (char)('0' + error_page_codes[i] % 10), '\0'};
        struct artefact *a = rendered_add(r, "error/", code, ".http");

        a->object = p->haproxy;
        PUT(&a->bytes, "HTTP/1.1 ");
        buf_i64(&a->bytes, error_page_codes[i]);
        buf_putc(&a->bytes, ' ');
        buf_puts(&a->bytes, reasons[i]);
        PUT(&a->bytes, "\r\n"
                       "Content-Type: text/html; charset=utf-8\r\n"
                       "Cache-Control: no-store\r\n"
                       "Content-Length: ");
        buf_i64(&a->bytes, (int64_t)page.len);
        PUT(&a->bytes, "\r\n\r\n");
        buf_put(&a->bytes, buf_str(&page), page.len);
    }
}
