/* Arguments that come again: their forms (../forms.h) are made once and kept with their blocks.
 *
 * A buffer's contents never change, so that what a program packs of them in each call may stay. A block that was an argument
 * a few times gets the form in which the program reads it, and that goes when the block does, or the executable that made
 * it. A block has one form at most, hardly larger than itself. Until there is one, and where there is no memory for it, the
 * program packs what it needs as it runs; the results have the same bits. One lock serves all; it is held for moments only.
 */
#include "python.h"

#include <stdlib.h>

#include "../forms.h"

#define WISHES 3    /* times that a form is missed before it is made: what makes it costs a few calls' worth */
#define PATIENCE 16 /* times that another form is missed before it takes the place of one that nobody used meanwhile */

struct pjrt_form {
    atomic_int references;
    const struct hilo_form *layout; /* the owner's */
    struct pjrt_block *memory;      /* NULL: it is being made */
    struct pjrt_block *block;       /* of the argument; NULL: given up */
    struct pjrt_form *next, **at;   /* among the owner's */
    int missed;                     /* times that another layout was wanted since this one was */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;

static void acquire(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
static void register_fork(void) { pthread_atfork(acquire, release, release); }

static void let_go(struct pjrt_form *form) {
    if (!form || atomic_fetch_sub_explicit(&form->references, 1, memory_order_acq_rel) > 1) return;
    pjrt_block_release(form->memory);
    free(form);
}

/* Takes a form from its block and its owner; the block's reference is the caller's then. Needs the lock. */
static struct pjrt_form *detach(struct pjrt_form *form) {
    form->block->form = NULL;
    form->block = NULL;
    *form->at = form->next;
    if (form->next) form->next->at = form->at;
    return form;
}

void pjrt_form_forget(struct pjrt_block *block) {
    acquire();
    struct pjrt_form *form = block->form ? detach(block->form) : NULL;
    block->wishes = 0;
    release();
    let_go(form);
}

void pjrt_forms_drop(struct pjrt_executable *e) {
    for (;;) {
        acquire();
        struct pjrt_form *form = e->forms ? detach(e->forms) : NULL;
        release();
        if (!form) return;
        let_go(form);
    }
}

/* A form to be made, in its block's and the executable's care; a reference is the caller's. Needs the lock. */
static struct pjrt_form *new_form(struct pjrt_executable *e, const struct hilo_form *layout, struct pjrt_block *block) {
    struct pjrt_form *form = malloc(sizeof *form);
    if (!form) return NULL;
    *form = (struct pjrt_form){.references = 2, .layout = layout, .block = block, .next = e->forms, .at = &e->forms};
    if (form->next) form->next->at = &form->next;
    e->forms = block->form = form;
    return form;
}

static struct pjrt_form *made(struct pjrt_executable *e, struct pjrt_form *form, struct pjrt_block *block) {
    struct pjrt_block *memory = pjrt_block_new(block->client, form->layout->nbytes);
    if (memory) hilo_form_pack(form->layout, block->data, memory->data, e->program->threads);
    acquire();
    form->memory = memory;
    struct pjrt_form *gone = memory ? NULL : detach(form);
    release();
    if (memory) return form;
    let_go(gone);
    let_go(form);
    return NULL;
}

/* The form of an argument in `block`, which the caller holds; NULL: there is none (yet). */
static struct pjrt_form *find(struct pjrt_executable *e, const struct hilo_form *layout, struct pjrt_block *block) {
    struct pjrt_form *other = NULL, *new = NULL;
    acquire();
    struct pjrt_form *form = block->form;
    if (form && hilo_form_same(form->layout, layout)) {
        form->missed = 0;
        if (form->memory)
            atomic_fetch_add_explicit(&form->references, 1, memory_order_relaxed);
        else
            form = NULL;
        release();
        return form;
    }
    if (form) {
        if (form->memory && ++form->missed >= PATIENCE) other = detach(form);
    } else {
        block->wishes += block->wishes < WISHES;
    }
    if (!block->form && block->wishes >= WISHES) new = new_form(e, layout, block);
    release();
    let_go(other);
    return new ? made(e, new, block) : NULL;
}

/* Whether nobody changes what is in the block, as far as they keep their word. */
static bool is_steady(struct pjrt_block *block) {
    return block->promised || (block->ours && !atomic_load_explicit(&block->foreign, memory_order_relaxed));
}

void pjrt_forms_take(struct pjrt_forms *forms, struct pjrt_executable *e, struct pjrt_block **held, void **arguments) {
    size_t count = (size_t)e->program->num_forms;
    pthread_once(&forking, register_fork);
    forms->pointers = count <= PJRT_FORMS_ON_STACK ? forms->room : malloc(2 * count * sizeof *forms->pointers);
    forms->count = forms->pointers ? count : 0;
    forms->held = (struct pjrt_form **)(forms->pointers + forms->count);
    for (size_t i = 0; i < forms->count; i++) {
        const struct hilo_form *layout = &e->program->forms[i];
        struct pjrt_block *block = held[layout->argument];
        bool usable = arguments[layout->argument] == block->data && is_steady(block);
        forms->held[i] = usable ? find(e, layout, block) : NULL;
        forms->pointers[i] = forms->held[i] ? forms->held[i]->memory->data : NULL;
    }
}

void pjrt_forms_give_back(struct pjrt_forms *forms) {
    for (size_t i = 0; i < forms->count; i++) let_go(forms->held[i]);
    if (forms->pointers != forms->room) free(forms->pointers);
}
