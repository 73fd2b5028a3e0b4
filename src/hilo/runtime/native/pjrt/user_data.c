/* What others keep with an object of ours, by key. There are few keys, so they are a list; one lock serves all lists. */
#include <stdlib.h>

#include "pjrt.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct pjrt_user_data *find(struct pjrt_user_data *list, const void *key) {
    while (list && list->key != key) list = list->next;
    return list;
}

void *pjrt_user_data_get(struct pjrt_user_data *const *list, const void *key) {
    pthread_mutex_lock(&lock);
    struct pjrt_user_data *entry = find(*list, key);
    void *data = entry ? entry->data : NULL;
    pthread_mutex_unlock(&lock);
    return data;
}

int pjrt_user_data_set(struct pjrt_user_data **list, const void *key, void *data, void (*destroy)(void *data)) {
    struct pjrt_user_data *fresh = malloc(sizeof *fresh), old = {0};
    if (!fresh) return -1;
    pthread_mutex_lock(&lock);
    struct pjrt_user_data *entry = find(*list, key);
    if (entry) {
        old = *entry;
        entry->data = data;
        entry->destroy = destroy;
    } else {
        *fresh = (struct pjrt_user_data){*list, key, data, destroy};
        *list = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(fresh);
    if (old.destroy) old.destroy(old.data);
    return 0;
}

void pjrt_user_data_clear(struct pjrt_user_data **list) {
    while (*list) {
        struct pjrt_user_data *entry = *list;
        *list = entry->next;
        if (entry->destroy) entry->destroy(entry->data);
        free(entry);
    }
}
