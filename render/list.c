/* SPDX-License-Identifier: Apache-2.0 */
/* acl/<which><name>.list: networks and values, one on a line; body/<rule>.txt: answers. */
#include "render/rule.h"

void
list_put(struct buf *out, const char *which, struct text name)
{
    PUT(out, " -f " LIST_FOLDER);
    buf_puts(out, which);
    writer_put_text(out, name);
    PUT(out, LIST_SUFFIX);
}

static void
write_networks(struct rendered *r, const char *folder, const struct object *o, unsigned field)
{
    const struct value *networks = object_field(o, field);
    struct artefact *a;

    if (networks->count == 0) {
        return;
    }
    a = rendered_add(r, folder, o->name.s, LIST_SUFFIX);
    a->object = o;
    for (uint32_t i = 0; i < networks->count; i++) {
        writer_put_text(&a->bytes, networks->u.items[i].u.text);
        buf_putc(&a->bytes, '\n');
    }
}

static void
write_listener(struct rendered *r, const struct object *o)
{
    write_networks(r, LIST_FOLDER LIST_LISTENER, o, F_LISTENER_ALLOWED_NETWORKS);
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
        write_networks(r, LIST_FOLDER LIST_TRUSTED, o, F_LISTENER_TRUSTED_PROXIES);
    }
    if (fields_int(o, F_LISTENER_ACCEPT_PROXY) != 0) {
        write_networks(r, LIST_FOLDER LIST_PROXY, o, F_LISTENER_ACCEPT_PROXY_NETWORKS);
    }
}

static void
write_bodies(struct rendered *r, struct layout *p, const struct layout_rules *rules)
{
    for (uint32_t i = rules->first; i < rules->first + rules->count; i++) {
        const struct object *rule = p->rules[i];

        if (rule_has_body(rule)) {
            struct artefact *a = rendered_add(r, BODY_FOLDER, rule->name.s, BODY_SUFFIX);

            a->object = rule;
            writer_put_text(&a->bytes, fields_text(rule, F_RULE_BODY));
        }
    }
}

void
list_write(struct rendered *r, struct layout *p)
{
    for (size_t i = 0; i < p->listener_count; i++) {
        const struct layout_listener *l = &p->listeners[i];

        if (fields_int(l->object, F_LISTENER_ENABLED) != 0) {
            write_listener(r, l->object);
            write_bodies(r, p, &l->rules);
        }
    }
    for (size_t i = 0; i < p->service_count; i++) {
        const struct layout_service *s = &p->services[i];

        if (s->guarded && s->served) {
            write_networks(r, LIST_FOLDER LIST_SERVICE, s->object, F_SERVICE_ALLOWED_NETWORKS);
            write_bodies(r, p, &s->rules);
        }
    }
    for (size_t i = 0; i < p->refs.count[K_CONDITION]; i++) {
        if (p->condition_used[i] != 0) {
            condition_write_list(r, p->refs.objects[K_CONDITION][i]);
        }
    }
}
