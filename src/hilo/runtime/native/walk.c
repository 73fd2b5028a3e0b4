/* The loops around the tiles of convolutions and products: what hilo/kernels/convolution_walk.py says in loop IR, made
 * when the package is built. Programs for this process call it; others bring the function of loop IR.
 *
 * The table is that file's: HEAD, then REGION for each region, then how many rows a tile takes of those that are left
 * (for one group, then for two). So are the places: PLACES, then the tiles by their numbers of rows. Names are the same
 * here. */
#include "ready.h"

#include <stdbool.h>
#include <stdint.h>

enum { MOST_ROWS = 24, GROUPS = MOST_ROWS + 1, LINE = 64 };

typedef void tile_fn(const char *a, const char *b, int64_t k, int64_t a_row, int64_t b_k, const char *ahead,
                     int64_t ahead_k, int64_t a_group, int64_t segments, int64_t a_segment, int64_t b_segment, char *c,
                     int64_t c_row, int64_t c_group, int64_t more, const char *touch, int64_t touch_row,
                     int64_t touch_group);
typedef void pack_fn(char *to, const char *source, int64_t b_k, int64_t b_segment, int64_t segments, int64_t k,
                     int64_t live, int64_t panels, int64_t to_panel, int64_t source_panel);
typedef void finish_fn(void **bufs, char *sums, int64_t row_bytes, int64_t group_bytes, int64_t m, int64_t m_row,
                       int64_t m_group, int64_t rows, int64_t column, int64_t live);

struct places {
    const char *a, *b;
    char *result, *sums, *packed;
    finish_fn *finish;
    pack_fn *pack;
    const char *touch;
    int64_t b_panel, b_k, packs;
    tile_fn *tiles[GROUPS];
};

struct head {
    int64_t units_m, units_n, rows, step, panels;
    int64_t width, columns, per_group, a_group, together, direct, finishes;
    int64_t outer, segments, inner, segments_step, inner_step;
    int64_t size, slot, slots, lines, regions, ahead_a;
};

struct region {
    int64_t o_lo, o_hi, o_step, s_lo, s_hi, s_step, r_lo, r_hi, bare;
    int64_t a, a0, a1, a2, a_outer, a_segment, m, m0, m1, m2, n0, n1, n2;
    int64_t axis, first, stride;
    int64_t rows, pair;
};

/* The unit, the block of k and the panel that are being written. */
struct state {
    void **bufs;
    const struct places *at;
    const struct head *h;
    const struct region *regions;
    const int64_t *taken; /* two tables, one behind the other */
    int64_t lo, hi;                        /* rows of the unit */
    int64_t o, s0, s1, r0, r1;             /* the block of k */
    int64_t b_k, b_segment, packed_bytes;  /* B as tiles read it; a panel's block, packed */
    bool last_block;
    const char *source, *a, *b, *ahead;
    int64_t column, live;
    bool direct, finishes, fetch_a;
    char *sums;
    uint64_t turn;
};

/* What the tiles of a region share. */
struct taps {
    int64_t segments, depth, b_segment, more;
    const char *b;
    bool last;
};

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t most(int64_t x, int64_t y) { return x > y ? x : y; }

/* Counts are not negative: the machine divides such numbers faster. */
static int64_t quotient(int64_t x, int64_t y) { return (int64_t)((uint64_t)x / (uint64_t)y); }

/* One tile of `take` rows (of each of two groups, if `two`): its sums, and if these are complete, what follows. */
static void tile(struct state *s, const struct region *r, const struct taps *t, const char *a, int64_t m, int64_t take,
                 bool two) {
    const struct head *h = s->h;
    int64_t rows = two ? take + take : take, group = (rows + 1) >> 1;
    int64_t a_group = two ? r->a1 : group * r->a2, m_group = two ? r->m1 : group * r->m2;
    int64_t row_bytes = h->width * h->size, result_row = h->columns * h->size;
    int64_t place = m * result_row + s->column * h->size;
    int64_t place_row = r->m2 * result_row, place_group = m_group * result_row;
    char *c = s->direct ? s->at->result + place : s->sums;
    int64_t c_row = s->direct ? place_row : row_bytes, c_group = s->direct ? place_group : group * row_bytes;
    const char *ahead = s->ahead + s->turn % (uint64_t)h->lines * LINE;
    int64_t ahead_k = s->at->b_k;
    if (s->fetch_a) ahead = a + rows * r->a2, ahead_k = LINE;
    tile_fn *compute = s->at->tiles[rows];
    compute(a, t->b, t->depth, r->a2, s->b_k, ahead, ahead_k, a_group, t->segments, r->a_segment, t->b_segment, c,
            c_row, c_group, t->more, t->last ? s->at->touch + place : c, t->last ? place_row : c_row,
            t->last ? place_group : c_group);
    if (t->last && s->finishes) {
        s->at->finish(s->bufs, c, c_row, c_group, m, r->m2, m_group, rows, s->column, s->live);
    }
    s->sums += rows * h->slot;
    s->turn++;
}

static void tiles(struct state *s, const struct region *r, const struct taps *t, const char *a, const int64_t lo[3],
                  const int64_t hi[3]) {
    for (int64_t i0 = lo[0]; i0 < hi[0]; i0++) {
        for (int64_t i1 = lo[1]; i1 < hi[1]; i1 += r->pair) {
            const char *at = a + i0 * r->a0 + i1 * r->a1;
            int64_t m = r->m + i0 * r->m0 + i1 * r->m1;
            bool two = r->pair == 2 && hi[1] - i1 > 1;
            const int64_t *taken = s->taken + (two ? GROUPS : 0);
            for (int64_t i2 = lo[2]; i2 < hi[2];) {
                int64_t take = taken[least(hi[2] - i2, r->rows)];
                tile(s, r, t, at + i2 * r->a2, m + i2 * r->m2, take, two);
                i2 += take;
            }
        }
    }
}

/* How many of the region's rows along the axis that units cut lie before row `what`. */
static int64_t rows_before(const struct region *r, int64_t what) {
    int64_t n = what - r->first;
    return n > 0 ? quotient(n + r->stride - 1, r->stride) : 0;
}

/* The block of k of a region, if the region has taps in it. */
static void region(struct state *s, const struct region *r) {
    const struct head *h = s->h;
    int64_t sizes[3] = {r->n0, r->n1, r->n2}, lo[3] = {0, 0, 0}, hi[3] = {r->n0, r->n1, r->n2};
    if (r->axis < 3) {
        lo[r->axis] = least(rows_before(r, s->lo), sizes[r->axis]);
        hi[r->axis] = least(rows_before(r, s->hi), sizes[r->axis]);
    }
    char *sums = s->sums;
    int64_t since = s->o - r->o_lo;
    int64_t s_lo = most(r->s_lo, s->s0), s_hi = least(r->s_hi, s->s1);
    int64_t r_lo = most(r->r_lo, s->r0), r_hi = least(r->r_hi, s->r1);
    if (since >= 0 && s->o < r->o_hi && (uint64_t)since % (uint64_t)r->o_step == 0 && s_lo < s_hi && r_lo < r_hi) {
        bool first = s->s0 <= r->s_lo && s->r0 <= r->r_lo && since == 0;
        int64_t a = r->a + quotient(since, r->o_step) * r->a_outer +
                    quotient(s_lo - r->s_lo, r->s_step) * r->a_segment + r_lo * h->size;
        struct taps t = {
            .segments = r->bare ? 0 : quotient(s_hi - s_lo + r->s_step - 1, r->s_step),
            .depth = r_hi - r_lo,
            .b = s->b + (s_lo - s->s0) * s->b_segment + (r_lo - s->r0) * s->b_k,
            .b_segment = r->s_step * s->b_segment,
            .more = !first,
            .last = s->s1 >= r->s_hi && s->r1 >= r->r_hi && s->o + r->o_step >= r->o_hi,
        };
        tiles(s, r, &t, s->a + a, lo, hi);
    }
    int64_t count = 1; /* of rows, each of which has its place, whether it is its turn or not */
    for (int i = 0; i < 3; i++) count *= most(hi[i] - lo[i], 0);
    s->sums = sums + count * h->slot;
}

/* A panel, for a block of k: all regions. */
static void panel(struct state *s, int64_t p, int64_t p0, int64_t p1) {
    const struct head *h = s->h;
    s->column = p * h->width;
    s->live = least(h->width, h->columns - s->column);
    s->a = s->at->a + quotient(p, h->per_group) * h->a_group;
    s->direct = h->direct && s->live == h->width;
    s->finishes = h->finishes || !s->direct;
    const char *source = s->source + p * s->at->b_panel;
    s->b = s->at->packs ? s->at->packed + (p - p0) * s->packed_bytes : source;
    s->fetch_a = h->ahead_a && p == p0;
    /* What is read next: the next block, or after the last one the next panels (after all of them the first). */
    int64_t following = p + p1 - p0 < h->panels ? p + p1 - p0 : p - p0;
    s->ahead = source + (s->s1 - s->s0) * (s->r1 - s->r0) * s->at->b_k;
    if (s->last_block) s->ahead = s->at->b + following * s->at->b_panel;
    s->sums = s->at->sums + (p - p0) * h->slots;
    s->turn = 0;
    for (int64_t i = 0; i < h->regions; i++) region(s, &s->regions[i]);
}

/* Pack the block of k of some panels. */
static void pack(const struct state *s, int64_t p0, int64_t first, int64_t end, int64_t live) {
    const struct places *at = s->at;
    if (first >= end) return;
    at->pack(at->packed + (first - p0) * s->packed_bytes, s->source + first * at->b_panel, at->b_k,
             s->h->inner * at->b_k, s->s1 - s->s0, s->r1 - s->r0, live, end - first, s->packed_bytes, at->b_panel);
}

/* The block of k from (o, s0, r0) on, of some panels. */
static void block(struct state *s, int64_t p0, int64_t p1) {
    const struct head *h = s->h;
    s->s1 = least(s->s0 + h->segments_step, h->segments);
    s->r1 = least(s->r0 + h->inner_step, h->inner);
    int64_t depth = s->r1 - s->r0, row_bytes = h->width * h->size;
    s->source = s->at->b + ((s->o * h->segments + s->s0) * h->inner + s->r0) * s->at->b_k;
    s->last_block = s->s1 == h->segments && s->r1 == h->inner && s->o + 1 == h->outer;
    s->b_k = s->at->packs ? row_bytes : s->at->b_k;
    s->b_segment = (s->at->packs ? depth : h->inner) * s->b_k;
    s->packed_bytes = (s->s1 - s->s0) * depth * row_bytes;
    if (s->at->packs) { /* whole panels together, one at the edge by itself */
        int64_t whole = least(p1, quotient(h->columns, h->width));
        pack(s, p0, p0, whole, h->width);
        pack(s, p0, most(whole, p0), p1, h->columns - whole * h->width);
    }
    for (int64_t p = p0; p < p1; p++) panel(s, p, p0, p1);
}

/* The start of part i of `total` in about equal parts. */
static int64_t cut(int64_t total, int64_t parts, int64_t i) { return quotient(total * i, parts); }

void hilo_conv_walk(void **bufs, const void *places, const void *table, int64_t begin, int64_t end) {
    const struct head *h = table;
    const struct region *regions = (const struct region *)(h + 1);
    const int64_t *taken = (const int64_t *)(regions + h->regions);
    struct state s = {.bufs = bufs, .at = places, .h = h, .regions = regions, .taken = taken};
    int64_t steps = quotient(h->rows + h->step - 1, h->step);
    for (int64_t u = begin; u < end; u++) {
        int64_t m = quotient(u, h->units_n), n = u - m * h->units_n;
        s.lo = cut(steps, h->units_m, m) * h->step;
        s.hi = least(cut(steps, h->units_m, m + 1) * h->step, h->rows);
        int64_t p_end = cut(h->panels, h->units_n, n + 1);
        for (int64_t p = cut(h->panels, h->units_n, n); p < p_end; p += h->together) {
            int64_t p1 = least(p + h->together, p_end);
            for (s.o = 0; s.o < h->outer; s.o++) {
                for (s.s0 = 0; s.s0 < h->segments; s.s0 += h->segments_step) {
                    for (s.r0 = 0; s.r0 < h->inner; s.r0 += h->inner_step) block(&s, p, p1);
                }
            }
        }
    }
}
