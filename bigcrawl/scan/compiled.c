/* Reads tags, joins plain references, and remembers links: pure.py in C, alternative by alternative of its expressions.
 *
 * Rules for editing: a change here is a change of pure.py, names.py or plain.py, and tests/unit/scan compares both. A
 * position is compared with the end of its text before each read. The cost is linear in the bytes of a page for the
 * reason given in pure.py. The GIL is held. Nothing is global but constants and the type in the module's state.
 *
 * A text of ASCII is read in place, a page of Latin-1 from a copy of one byte a character, any other text from a copy of
 * four. Functions that take `wide` are compiled once for that, and once for the others.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* ---- classes of characters ---- */

enum {
    BLANK = 1 << 0,        /* [\t\n\f\r ] */
    LETTER = 1 << 1,       /* [A-Za-z] */
    GREATER = 1 << 2,      /* > */
    SLASH = 1 << 3,        /* / */
    EQUALS = 1 << 4,       /* = */
    DOUBLE_QUOTE = 1 << 5, /* " */
    SINGLE_QUOTE = 1 << 6, /* ' */
    AMPERSAND = 1 << 7,    /* & */
    SEGMENT_FIRST = 1 << 8,
    SEGMENT = 1 << 9, /* of the first segment too, which has no colon */
    QUERY = 1 << 10,
    ORIGIN = 1 << 11,
    COLON = 1 << 12,
    LETTER_N = 1 << 13, /* [nN] */
};
#define NAME_ENDS (BLANK | SLASH | GREATER)
#define PLAIN_ENDS (GREATER | DOUBLE_QUOTE | SINGLE_QUOTE | EQUALS)
#define VALUE_ENDS (GREATER | DOUBLE_QUOTE)

#define IS_LETTER(c) (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z'))
#define IS_ALNUM(c) (IS_LETTER(c) || ((c) >= '0' && (c) <= '9'))
/* In all of segments and queries; a query has no apostrophe. */
#define IS_PLAIN(c) \
    (IS_ALNUM(c) || (c) == '_' || (c) == '~' || (c) == '!' || (c) == '$' || (c) == '&' || (c) == '(' || (c) == ')' || \
     (c) == '*' || (c) == '+' || (c) == ',' || (c) == ';' || (c) == '=' || (c) == '@' || (c) == '-')
#define CLASS(c) \
    (((c) == '\t' || (c) == '\n' || (c) == '\f' || (c) == '\r' || (c) == ' ' ? BLANK : 0) | \
     (IS_LETTER(c) ? LETTER : 0) | ((c) == '>' ? GREATER : 0) | ((c) == '/' ? SLASH : 0) | \
     ((c) == '=' ? EQUALS : 0) | ((c) == '"' ? DOUBLE_QUOTE : 0) | ((c) == '\'' ? SINGLE_QUOTE : 0) | \
     ((c) == '&' ? AMPERSAND : 0) | (IS_PLAIN(c) || (c) == '\'' ? SEGMENT_FIRST : 0) | \
     (IS_PLAIN(c) || (c) == '\'' || (c) == '.' || (c) == '%' ? SEGMENT : 0) | \
     (IS_PLAIN(c) || (c) == '.' || (c) == '%' || (c) == ':' || (c) == '/' || (c) == '?' || (c) == '[' || \
              (c) == ']' || (c) == '|' \
          ? QUERY \
          : 0) | \
     (IS_ALNUM(c) || (c) == '.' || (c) == ':' || (c) == '-' ? ORIGIN : 0) | ((c) == ':' ? COLON : 0) | \
     ((c) == 'n' || (c) == 'N' ? LETTER_N : 0))
#define CLASS4(c) CLASS(c), CLASS((c) + 1), CLASS((c) + 2), CLASS((c) + 3)
#define CLASS16(c) CLASS4(c), CLASS4((c) + 4), CLASS4((c) + 8), CLASS4((c) + 12)
static const uint16_t CLASSES[128] = {
    CLASS16(0), CLASS16(16), CLASS16(32), CLASS16(48), CLASS16(64), CLASS16(80), CLASS16(96), CLASS16(112),
};

/* ---- texts ---- */

typedef struct {
    const uint8_t *narrow; /* of ASCII or Latin-1; or NULL, and then */
    const Py_UCS4 *wide;
    Py_ssize_t end;
} Text;

INLINE Py_UCS4
char_at(const Text *text, int wide, Py_ssize_t at)
{
    return wide ? text->wide[at] : text->narrow[at];
}

INLINE unsigned
class_at(const Text *text, int wide, Py_ssize_t at)
{
    Py_UCS4 c = char_at(text, wide, at);
    return c < 128 ? CLASSES[c] : 0;
}

INLINE int
is_in(const Text *text, int wide, Py_ssize_t at, unsigned classes)
{
    return at < text->end && (class_at(text, wide, at) & classes);
}

INLINE int
is_char(const Text *text, int wide, Py_ssize_t at, Py_UCS4 c)
{
    return at < text->end && char_at(text, wide, at) == c;
}

/* Return the position behind all characters of these classes. */
INLINE Py_ssize_t
skip(const Text *text, int wide, Py_ssize_t at, unsigned classes)
{
    while (at < text->end && (class_at(text, wide, at) & classes))
        at++;
    return at;
}

/* Return the position of the next character of these classes, or the end. */
INLINE Py_ssize_t
find(const Text *text, int wide, Py_ssize_t at, unsigned classes)
{
    while (at < text->end && !(class_at(text, wide, at) & classes))
        at++;
    return at;
}

INLINE Py_ssize_t
find_char(const Text *text, int wide, Py_ssize_t at, Py_UCS4 c)
{
    if (!wide) {
        const uint8_t *found = at < text->end ? memchr(text->narrow + at, (int)c, (size_t)(text->end - at)) : NULL;
        return found ? found - text->narrow : text->end;
    }
    while (at < text->end && text->wide[at] != c)
        at++;
    return at;
}

/* Return whether the text continues with a word of lower-case ASCII letters, in any case. */
INLINE int
is_word(const Text *text, int wide, Py_ssize_t at, const char *word, Py_ssize_t length)
{
    if (at < 0 || length > text->end - at)
        return 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = char_at(text, wide, at + i);
        if (c != (Py_UCS4)word[i] && c != (Py_UCS4)(word[i] - 32))
            return 0;
    }
    return 1;
}

/* ---- names of elements ---- */

enum { OTHER, LINKING, EMBEDDING, RAW, PLAINTEXT };

typedef struct {
    const char *name;
    int kind;
} Name;

/* By length; a name that ends the tables of its length is followed by NULL. The order within RAW is that of `told`. */
#define LONGEST_NAME 14
static const Name NAMES[LONGEST_NAME + 1][8] = {
    {{0}},
    {{"a", LINKING}},
    {{"mi", EMBEDDING}, {"mn", EMBEDDING}, {"mo", EMBEDDING}},
    {{"img", EMBEDDING}, {"use", EMBEDDING}, {"xmp", RAW}},
    {{"area", LINKING}, {"base", LINKING}, {"link", LINKING}, {"meta", LINKING}, {"form", EMBEDDING},
     {"tref", EMBEDDING}, {"mrow", EMBEDDING}},
    {{"frame", LINKING}, {"style", RAW}, {"title", RAW}, {"image", EMBEDDING}, {"embed", EMBEDDING},
     {"input", EMBEDDING}, {"mpath", EMBEDDING}, {"mtext", EMBEDDING}},
    {{"script", RAW}, {"iframe", RAW}, {"source", EMBEDDING}, {"object", EMBEDDING}, {"applet", EMBEDDING},
     {"button", EMBEDDING}, {"filter", EMBEDDING}, {"cursor", EMBEDDING}},
    {{"noembed", RAW}, {"feimage", EMBEDDING}, {"pattern", EMBEDDING}, {"maction", EMBEDDING}},
    {{"template", LINKING}, {"textarea", RAW}, {"noframes", RAW}, {"textpath", EMBEDDING}},
    {{"plaintext", PLAINTEXT}},
    {{0}},
    {{0}},
    {{0}},
    {{0}},
    {{"lineargradient", EMBEDDING}, {"radialgradient", EMBEDDING}},
};

static const char *const RAW_NAMES[] = {
    "script", "style", "textarea", "title", "iframe", "noframes", "noembed", "xmp",
};
#define RAW_COUNT ((int)(sizeof(RAW_NAMES) / sizeof(*RAW_NAMES)))

/* Return the name that stands here and ends here, if it is one of NAMES. */
INLINE const Name *
name_at(const Text *text, int wide, Py_ssize_t at)
{
    Py_ssize_t most = text->end - at < LONGEST_NAME + 1 ? text->end - at : LONGEST_NAME + 1, length = 0;
    while (length < most && (class_at(text, wide, at + length) & LETTER))
        length++;
    if (length > LONGEST_NAME || !is_in(text, wide, at + length, NAME_ENDS))
        return NULL;
    const Name *name = NAMES[length];
    for (int i = 0; i < 8 && name[i].name; i++) {
        if (is_word(text, wide, at, name[i].name, length))
            return &name[i];
    }
    return NULL;
}

/* ---- tags ---- */

typedef struct {
    enum { NOTHING, PLAIN_LINK, TAG } what;
    const Name *name;
    int is_end_tag, is_closed;
    Py_ssize_t name_start;
    Py_ssize_t start, end; /* of the reference of a plain link, or else of the attributes */
    Py_ssize_t behind;
} Tag;

/* Return the position of the > behind plain attributes; -1 if they are not. */
INLINE Py_ssize_t
plain_end(const Text *text, int wide, Py_ssize_t at)
{
    at = find(text, wide, at, PLAIN_ENDS);
    while (is_char(text, wide, at, '=') && is_char(text, wide, at + 1, '"')) {
        Py_ssize_t quote = find(text, wide, at + 2, VALUE_ENDS);
        if (!is_char(text, wide, quote, '"'))
            return -1;
        at = find(text, wide, quote + 1, PLAIN_ENDS);
    }
    return is_char(text, wide, at, '>') ? at : -1;
}

/* Return the position behind a value, which begins here. */
INLINE Py_ssize_t
value_end(const Text *text, int wide, Py_ssize_t at)
{
    if (is_in(text, wide, at, DOUBLE_QUOTE | SINGLE_QUOTE)) {
        at = find_char(text, wide, at + 1, char_at(text, wide, at));
        return at < text->end ? at + 1 : at;
    }
    return find(text, wide, at, BLANK | GREATER);
}

/* Return the position of the > behind attributes, or the end. */
static Py_ssize_t
attributes_end(const Text *text, int wide, Py_ssize_t at)
{
    for (;;) {
        at = skip(text, wide, at, BLANK | SLASH);
        if (at >= text->end || (class_at(text, wide, at) & GREATER))
            return at;
        at = find(text, wide, at + 1, NAME_ENDS | EQUALS);
        Py_ssize_t equals = skip(text, wide, at, BLANK);
        if (is_char(text, wide, equals, '='))
            at = value_end(text, wide, skip(text, wide, equals + 1, BLANK));
    }
}

/* Return the position behind attributes of a plain link that do not matter. */
INLINE Py_ssize_t
others_end(const Text *text, int wide, Py_ssize_t at)
{
    for (;;) {
        Py_ssize_t equals = find(text, wide, at, PLAIN_ENDS), quote;
        if (!is_char(text, wide, equals, '=') || !is_char(text, wide, equals + 1, '"'))
            return at;
        if (is_word(text, wide, equals - 3, "rel", 3)) {
            if (!(class_at(text, wide, equals - 4) & BLANK)) /* there is a tag's name in front */
                return at;
            for (quote = equals + 2;; quote++) {
                quote = find(text, wide, quote, VALUE_ENDS | AMPERSAND | LETTER_N);
                if (!is_in(text, wide, quote, LETTER_N))
                    break;
                if (is_word(text, wide, quote + 1, "of", 2))
                    return at;
            }
        } else {
            if ((class_at(text, wide, equals - 1) & BLANK) || is_word(text, wide, equals - 4, "href", 4))
                return at;
            quote = find(text, wide, equals + 2, VALUE_ENDS);
        }
        if (!is_char(text, wide, quote, '"'))
            return at;
        at = quote + 1;
    }
}

/* Read a plain link, whose name's a stands here. */
INLINE int
read_link(const Text *text, int wide, Py_ssize_t at, Tag *tag)
{
    at = find(text, wide, others_end(text, wide, at + 1), PLAIN_ENDS);
    if (!is_char(text, wide, at, '=') || !is_char(text, wide, at + 1, '"') || !is_word(text, wide, at - 4, "href", 4) ||
        !(class_at(text, wide, at - 5) & BLANK))
        return 0;
    tag->start = at + 2;
    tag->end = find(text, wide, at + 2, VALUE_ENDS | AMPERSAND);
    if (!is_char(text, wide, tag->end, '"'))
        return 0;
    at = find(text, wide, others_end(text, wide, tag->end + 1), PLAIN_ENDS);
    if (!is_char(text, wide, at, '>'))
        return 0;
    tag->what = PLAIN_LINK;
    tag->behind = at + 1;
    return 1;
}

/* Return the position behind a comment, behind whose <!-- this is. */
static Py_ssize_t
comment_end(const Text *text, int wide, Py_ssize_t at)
{
    Py_ssize_t first = is_char(text, wide, at, '-') ? at + 1 : at;
    if (is_char(text, wide, first, '>'))
        return first + 1;
    for (;; at++) {
        at = find_char(text, wide, at, '-');
        if (at >= text->end)
            return at;
        if (is_char(text, wide, at + 1, '-')) {
            Py_ssize_t last = is_char(text, wide, at + 2, '!') ? at + 3 : at + 2;
            if (is_char(text, wide, last, '>'))
                return last + 1;
        }
    }
}

/* Find the next tag that is read. `all`: those of EMBEDDING too. */
INLINE void
next_tag(const Text *text, int wide, int all, Py_ssize_t at, Tag *tag)
{
    for (;;) {
        at = find_char(text, wide, at, '<') + 1; /* behind it */
        if (at > text->end) {
            tag->what = NOTHING;
            return;
        }
        if (is_in(text, wide, at, LETTER)) {
            const Name *name = name_at(text, wide, at);
            if (name && (name->kind != EMBEDDING || all)) {
                tag->name = name;
                tag->is_end_tag = 0;
                break;
            }
            Py_ssize_t end = plain_end(text, wide, at + 1);
            if (end < 0)
                end = attributes_end(text, wide, find(text, wide, at + 1, NAME_ENDS));
            at = end < text->end ? end + 1 : end;
        } else if (is_char(text, wide, at, '/') && is_in(text, wide, at + 1, LETTER)) {
            if (!is_char(text, wide, at + 1, 't') && !is_char(text, wide, at + 1, 'T')) {
                Py_ssize_t end = find(text, wide, at + 2, PLAIN_ENDS);
                if (is_char(text, wide, end, '>')) {
                    at = end + 1;
                    continue;
                }
            }
            const Name *name = name_at(text, wide, at + 1);
            if (name && (name->kind == LINKING || (name->kind == EMBEDDING && all))) {
                tag->name = name;
                tag->is_end_tag = 1;
                break;
            }
            at = attributes_end(text, wide, find(text, wide, at + 2, NAME_ENDS));
            at = at < text->end ? at + 1 : at;
        } else if (is_char(text, wide, at, '!') && is_char(text, wide, at + 1, '-') && is_char(text, wide, at + 2, '-')) {
            at = comment_end(text, wide, at + 3);
        } else if (is_char(text, wide, at, '!') || is_char(text, wide, at, '?') || is_char(text, wide, at, '/')) {
            at = find_char(text, wide, at + 1, '>');
            at = at < text->end ? at + 1 : at;
        }
    }
    tag->name_start = at;
    at += tag->is_end_tag;
    Py_ssize_t start = at + (Py_ssize_t)strlen(tag->name->name);
    if (start == at + 1 && !tag->is_end_tag && is_in(text, wide, start, BLANK) && read_link(text, wide, at, tag))
        return;
    tag->what = TAG;
    tag->start = start;
    tag->end = plain_end(text, wide, start);
    if (tag->end < 0)
        tag->end = attributes_end(text, wide, start);
    tag->is_closed = tag->end < text->end;
    tag->behind = tag->end + tag->is_closed;
}

/* Return the position of the tag that ends an element's text, or the end. */
static Py_ssize_t
raw_end(const Text *text, int wide, Py_ssize_t at, const char *name)
{
    Py_ssize_t length = (Py_ssize_t)strlen(name);
    for (;; at++) {
        at = find_char(text, wide, at, '<');
        if (at >= text->end || (is_char(text, wide, at + 1, '/') && is_word(text, wide, at + 2, name, length) &&
                                is_in(text, wide, at + 2 + length, NAME_ENDS)))
            return at;
    }
}

/* Return the position behind the first reference of an unclosed <a that is written to its end; -1 if there is none. */
static Py_ssize_t
whole_href_end(const Text *text, int wide, Py_ssize_t start, Py_ssize_t end)
{
    Text attributes = {text->narrow, text->wide, end};
    for (Py_ssize_t at = start; at < end; at++) {
        if (!is_word(&attributes, wide, at, "href", 4) ||
            (at > start && !is_in(&attributes, wide, at - 1, BLANK | SLASH | DOUBLE_QUOTE | SINGLE_QUOTE)))
            continue;
        Py_ssize_t quote = skip(&attributes, wide, at + 4, BLANK);
        if (!is_char(&attributes, wide, quote, '='))
            continue;
        quote = skip(&attributes, wide, quote + 1, BLANK);
        if (!is_in(&attributes, wide, quote, DOUBLE_QUOTE | SINGLE_QUOTE))
            continue;
        Py_ssize_t last = find_char(&attributes, wide, quote + 1, char_at(&attributes, wide, quote));
        if (last < end)
            return last + 1;
    }
    return -1;
}

/* ---- the iterator over runs ---- */

typedef struct {
    PyObject_HEAD
    PyObject *string;
    Text text;
    PyObject *latin; /* a copy of `string`, if it is Latin-1 and not ASCII */
    Py_UCS4 *copy;   /* the same, if it is neither */
    Py_ssize_t at, looks, templates, foreign_at, foreign_depth;
    int all, told, with_ends;
} Runs;

/* Return whether a position, behind all others that were asked for, is within SVG or MathML. */
static int
is_foreign(Runs *runs, int wide, Py_ssize_t end)
{
    Text text = {runs->text.narrow, runs->text.wide, end};
    for (Py_ssize_t at = runs->foreign_at;; at++) {
        at = find_char(&text, wide, at, '<');
        if (at >= end)
            break;
        int ends = is_char(&text, wide, at + 1, '/');
        Py_ssize_t name = at + 1 + ends;
        Py_ssize_t length = is_word(&text, wide, name, "svg", 3) ? 3 : is_word(&text, wide, name, "math", 4) ? 4 : 0;
        if (length == 0 || !is_in(&text, wide, name + length, NAME_ENDS))
            continue;
        if (!ends)
            runs->foreign_depth++;
        else if (runs->foreign_depth > 0)
            runs->foreign_depth--;
    }
    runs->foreign_at = end;
    return runs->foreign_depth > 0;
}

/* Return a run; its lists are released. */
static PyObject *
run_of(Runs *runs, PyObject *hrefs, PyObject *ends, const Tag *tag)
{
    Py_ssize_t behind = tag ? tag->behind : runs->text.end;
    PyObject *name = tag && tag->is_end_tag ? PyUnicode_FromFormat("/%s", tag->name->name)
                                            : PyUnicode_FromString(tag ? tag->name->name : "");
    PyObject *written = tag ? PyUnicode_Substring(runs->string, tag->start, tag->end) : PyUnicode_FromString("");
    PyObject *position = PyLong_FromSsize_t(behind);
    PyObject *run = NULL;
    if (name && written && position)
        run = PyTuple_Pack(5, hrefs, ends, name, written, position);
    Py_DECREF(hrefs);
    Py_DECREF(ends);
    Py_XDECREF(name);
    Py_XDECREF(written);
    Py_XDECREF(position);
    return run;
}

static int
append(PyObject *list, PyObject *item)
{
    int failed = item == NULL || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

INLINE PyObject *
next_run(Runs *runs, int wide)
{
    const Text *text = &runs->text;
    PyObject *hrefs = PyList_New(0), *ends = PyList_New(0);
    if (!hrefs || !ends)
        goto failed;
    while (runs->at < text->end && runs->looks > 0) {
        Tag tag;
        runs->looks--;
        next_tag(text, wide, runs->all, runs->at, &tag);
        if (tag.what == NOTHING) {
            runs->at = text->end;
            break;
        }
        runs->at = tag.behind;
        if (tag.what == PLAIN_LINK) {
            if (runs->templates)
                continue;
            if (append(hrefs, PyUnicode_Substring(runs->string, tag.start, tag.end)) < 0 ||
                (runs->with_ends && append(ends, PyLong_FromSsize_t(tag.behind)) < 0))
                goto failed;
            continue;
        }
        const char *name = tag.name->name;
        if (!tag.is_closed) {
            runs->looks = 0;
            if (runs->templates || tag.is_end_tag || strcmp(name, "a") != 0)
                break;
            tag.end = whole_href_end(text, wide, tag.start, tag.end);
            if (tag.end < 0)
                break;
            return run_of(runs, hrefs, ends, &tag);
        }
        if (strcmp(name, "template") == 0) {
            if (!tag.is_end_tag)
                runs->templates++;
            else if (runs->templates > 0)
                runs->templates--;
            continue;
        }
        if (tag.name->kind == PLAINTEXT) {
            runs->looks = 0;
            break;
        }
        int is_told = 1;
        if (tag.name->kind == RAW && !tag.is_end_tag) {
            int is_empty = tag.end > tag.start && is_char(text, wide, tag.end - 1, '/');
            if (!is_empty || !is_foreign(runs, wide, tag.name_start))
                runs->at = raw_end(text, wide, tag.behind, name);
            for (int i = 0; i < RAW_COUNT; i++) {
                if (strcmp(name, RAW_NAMES[i]) == 0)
                    is_told = (runs->told >> i) & 1;
            }
        }
        if (is_told && !runs->templates)
            return run_of(runs, hrefs, ends, &tag);
    }
    if (PyList_Size(hrefs) > 0) {
        runs->looks = 0;
        return run_of(runs, hrefs, ends, NULL);
    }
failed:
    Py_XDECREF(hrefs);
    Py_XDECREF(ends);
    return NULL;
}

static PyObject *
runs_next(PyObject *self)
{
    Runs *runs = (Runs *)self;
    return runs->copy ? next_run(runs, 1) : next_run(runs, 0);
}

static void
runs_dealloc(PyObject *self)
{
    Runs *runs = (Runs *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(runs->string);
    Py_XDECREF(runs->latin);
    PyMem_Free(runs->copy);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot RUNS_SLOTS[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, runs_next},
    {Py_tp_dealloc, runs_dealloc},
    {0, NULL},
};
static PyType_Spec RUNS_SPEC = {
    .name = "bigcrawl.scan.compiled.Runs",
    .basicsize = sizeof(Runs),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = RUNS_SLOTS,
};

typedef struct {
    PyObject *runs_type;
} State;

/* Read a string in place if it is ASCII; `text->narrow` stays NULL if not. -1 and an exception if it is no string.
 *
 * Of a string that is not ASCII, Python keeps a copy in UTF-8 with it: not for long ones.
 */
static int
read_ascii(PyObject *string, Text *text)
{
    Py_ssize_t bytes;
    text->wide = NULL;
    text->end = PyUnicode_GetLength(string);
    text->narrow = text->end < 0 ? NULL : (const uint8_t *)PyUnicode_AsUTF8AndSize(string, &bytes);
    if (text->narrow) {
        if (bytes != text->end)
            text->narrow = NULL;
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return -1;
    PyErr_Clear(); /* a lone surrogate */
    return 0;
}

/* Return whether Python holds a long string in a byte a character, as if all of them are in Latin-1. */
static int
is_narrow(PyObject *string, Py_ssize_t length)
{
    PyObject *size = PyObject_CallMethod(string, "__sizeof__", NULL);
    Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    return bytes >= 0 && bytes / 2 < length;
}

/* Read a string of any kind; return the copy that is read, if any. If there is no `text->narrow` either, it failed.
 *
 * If `latin` is given, it receives the copy of a string of Latin-1.
 */
static Py_UCS4 *
read_text(PyObject *string, Text *text, PyObject **latin)
{
    text->narrow = NULL;
    PyObject *is_ascii = PyObject_CallMethod(string, "isascii", NULL);
    if (!is_ascii)
        return NULL;
    Py_DECREF(is_ascii);
    if (is_ascii == Py_True && (read_ascii(string, text) < 0 || text->narrow))
        return NULL;
    text->end = PyUnicode_GetLength(string);
    if (text->end < 0)
        return NULL;
    if (latin && is_narrow(string, text->end) && (*latin = PyUnicode_AsLatin1String(string))) {
        text->narrow = (const uint8_t *)PyBytes_AsString(*latin);
        return NULL;
    }
    PyErr_Clear(); /* of a subclass of str that says what is not so */
    text->wide = PyUnicode_AsUCS4Copy(string);
    return (Py_UCS4 *)text->wide;
}

static PyObject *
scan_runs(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    State *state = PyModule_GetState(module);
    if (count < 2 || count > 4) {
        PyErr_SetString(PyExc_TypeError, "runs() takes text, looks_max, more, with_ends");
        return NULL;
    }
    Py_ssize_t looks = PyLong_AsSsize_t(arguments[1]);
    if (looks == -1 && PyErr_Occurred())
        return NULL;
    int with_ends = count > 3 ? PyObject_IsTrue(arguments[3]) : 0;
    int all = count > 2 ? PyObject_IsTrue(arguments[2]) : 0;
    if (with_ends < 0 || all < 0)
        return NULL;
    int told = 0;
    for (int i = 0; i < RAW_COUNT; i++) {
        int is_told = strcmp(RAW_NAMES[i], "iframe") == 0;
        if (all && !is_told) {
            PyObject *name = PyUnicode_FromString(RAW_NAMES[i]);
            is_told = name ? PySequence_Contains(arguments[2], name) : -1;
            Py_XDECREF(name);
            if (is_told < 0)
                return NULL;
        }
        told |= is_told << i;
    }
    Text text;
    PyObject *latin = NULL;
    Py_UCS4 *copy = read_text(arguments[0], &text, &latin);
    if (!text.narrow && !copy)
        return NULL;
    Runs *runs = PyObject_New(Runs, (PyTypeObject *)state->runs_type);
    if (!runs) {
        Py_XDECREF(latin);
        PyMem_Free(copy);
        return NULL;
    }
    Py_INCREF(arguments[0]);
    runs->string = arguments[0];
    runs->text = text;
    runs->latin = latin;
    runs->copy = copy;
    runs->at = runs->templates = runs->foreign_at = runs->foreign_depth = 0;
    runs->looks = looks;
    runs->all = all;
    runs->told = told;
    runs->with_ends = with_ends;
    return (PyObject *)runs;
}

/* ---- attributes ---- */

/* Return text[start:end] in lower case. */
INLINE PyObject *
lower_case(const Text *text, int wide, PyObject *string, Py_ssize_t start, Py_ssize_t end)
{
    char lower[32];
    Py_ssize_t length = end - start;
    for (Py_ssize_t i = 0; i < length && i < (Py_ssize_t)sizeof(lower); i++) {
        Py_UCS4 c = char_at(text, wide, start + i);
        if (c >= 128 || length > (Py_ssize_t)sizeof(lower)) {
            PyObject *name = PyUnicode_Substring(string, start, end);
            PyObject *lowered = name ? PyObject_CallMethod(name, "lower", NULL) : NULL;
            Py_XDECREF(name);
            return lowered;
        }
        lower[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    return PyUnicode_FromStringAndSize(lower, length);
}

INLINE PyObject *
values_of(const Text *text, int wide, PyObject *string)
{
    PyObject *values = PyDict_New();
    Py_ssize_t at = 0;
    while (values) {
        at = skip(text, wide, at, NAME_ENDS);
        if (at >= text->end)
            break;
        Py_ssize_t name_end = find(text, wide, at + 1, NAME_ENDS | EQUALS), start = name_end, end = name_end;
        PyObject *name = lower_case(text, wide, string, at, name_end), *value = NULL;
        Py_ssize_t equals = skip(text, wide, name_end, BLANK);
        at = name_end;
        if (is_char(text, wide, equals, '=')) {
            start = skip(text, wide, equals + 1, BLANK);
            at = end = value_end(text, wide, start);
            if (is_in(text, wide, start, DOUBLE_QUOTE | SINGLE_QUOTE)) {
                Py_UCS4 quote = char_at(text, wide, start++);
                if (end > start && char_at(text, wide, end - 1) == quote)
                    end--;
            }
        }
        int is_there = name ? PyDict_Contains(values, name) : -1;
        if (is_there == 0) {
            value = PyUnicode_Substring(string, start, end);
            is_there = value ? PyDict_SetItem(values, name, value) : -1;
        }
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (is_there < 0)
            Py_CLEAR(values);
    }
    return values;
}

static PyObject *
scan_attributes(PyObject *module, PyObject *written)
{
    Text text;
    PyObject *values;
    (void)module;
    Py_UCS4 *copy = read_text(written, &text, NULL);
    if (!text.narrow && !copy)
        return NULL;
    values = copy ? values_of(&text, 1, written) : values_of(&text, 0, written);
    PyMem_Free(copy);
    return values;
}

/* ---- plain references ---- */

/* Return the position behind segments and query of a path, whose first slash, if it has one, is behind. */
static Py_ssize_t
path_end(const Text *text, Py_ssize_t at)
{
    while (is_in(text, 0, at, SEGMENT_FIRST)) {
        at = skip(text, 0, at + 1, SEGMENT | COLON);
        at += is_char(text, 0, at, '/');
    }
    return is_char(text, 0, at, '?') ? skip(text, 0, at + 1, QUERY) : at;
}

/* Return the position behind a path from the base's directory, or `at` if there is none. */
static Py_ssize_t
from_directory_end(const Text *text, Py_ssize_t at)
{
    if (!is_in(text, 0, at, SEGMENT_FIRST))
        return at;
    at = skip(text, 0, at + 1, SEGMENT);
    if (is_char(text, 0, at, '/'))
        return path_end(text, at + 1);
    return is_char(text, 0, at, '?') ? skip(text, 0, at + 1, QUERY) : at;
}

/* Return how many characters of a directory are left some levels above. */
static Py_ssize_t
above(const Text *directory, Py_ssize_t root, Py_ssize_t levels)
{
    Py_ssize_t end = directory->end;
    for (; levels > 0 && end > root; levels--) {
        end--;
        while (end > root && directory->narrow[end - 1] != '/')
            end--;
    }
    return end;
}

/* Return prefix[:prefix_end] + reference[start:end], a new reference. */
static PyObject *
concatenated(PyObject *prefix, Py_ssize_t prefix_end, PyObject *reference, Py_ssize_t start, Py_ssize_t end)
{
    PyObject *head = PyUnicode_Substring(prefix, 0, prefix_end);
    PyObject *tail = head ? PyUnicode_Substring(reference, start, end) : NULL;
    PyObject *joined = tail ? PyUnicode_Concat(head, tail) : NULL;
    Py_XDECREF(head);
    Py_XDECREF(tail);
    return joined;
}

typedef struct {
    PyObject *origin, *directory, *path, *origin_of;
    Text origin_text, directory_text, path_text;
} Base;

/* Return the URL of a reference with a host, whose // stands at `slashes`; "" if it is invalid, Py_None if not plain. */
static PyObject *
with_origin(const Base *base, PyObject *reference, const Text *text, Py_ssize_t slashes)
{
    const Text *own = &base->origin_text;
    Py_ssize_t start = slashes + 2;
    Text name = {text->narrow, NULL, text->end - start > 100 ? start + 100 : text->end};
    Py_ssize_t path = skip(&name, 0, start, ORIGIN);
    Py_ssize_t end = path > start && is_char(text, 0, path, '/') ? path_end(text, path + 1) : path;
    if (path == start || (end < text->end && !is_char(text, 0, end, '#')))
        return Py_NewRef(Py_None);
    PyObject *origin, *url = NULL;
    if (path == own->end && memcmp(text->narrow, own->narrow, (size_t)path) == 0) {
        origin = Py_NewRef(base->origin);
    } else {
        Py_ssize_t scheme = slashes == 0 ? find_char(own, 0, 0, '/') : 0;
        PyObject *written = concatenated(base->origin, scheme, reference, 0, path);
        origin = written ? PyObject_CallFunctionObjArgs(base->origin_of, written, NULL) : NULL;
        Py_XDECREF(written);
    }
    if (origin == Py_None) {
        Py_DECREF(origin);
        return PyUnicode_FromString("");
    }
    Py_ssize_t origin_end = origin ? PyUnicode_GetLength(origin) : -1;
    if (origin_end < 0) {
        Py_XDECREF(origin);
        return NULL;
    }
    if (end > path) {
        url = concatenated(origin, origin_end, reference, path, end);
    } else {
        PyObject *slash = PyUnicode_FromStringAndSize("/", 1);
        url = slash ? PyUnicode_Concat(origin, slash) : NULL;
        Py_XDECREF(slash);
    }
    Py_DECREF(origin);
    return url;
}

/* Return the URL of a reference; Py_None if it is not plain. */
static PyObject *
joined_ascii(const Base *base, PyObject *reference, const Text *text)
{
    PyObject *prefix;
    Py_ssize_t prefix_end, start = 0, end, scheme = 0;
    if (is_word(text, 0, 0, "http", 4))
        scheme = is_char(text, 0, 4, ':') ? 5 : is_word(text, 0, 4, "s", 1) && is_char(text, 0, 5, ':') ? 6 : 0;
    if (is_char(text, 0, scheme, '/') && is_char(text, 0, scheme + 1, '/'))
        return with_origin(base, reference, text, scheme);
    if (is_char(text, 0, 0, '/')) {
        prefix = base->origin;
        prefix_end = base->origin_text.end;
        end = path_end(text, 1);
    } else if (is_char(text, 0, 0, '?')) {
        prefix = base->path;
        prefix_end = base->path_text.end;
        end = skip(text, 0, 1, QUERY);
    } else {
        Py_ssize_t levels = 0;
        while (is_char(text, 0, start, '.')) {
            int is_up = is_char(text, 0, start + 1, '.');
            if (!is_char(text, 0, start + 1 + is_up, '/'))
                break;
            levels += is_up;
            start += 2 + is_up;
        }
        prefix = base->directory;
        prefix_end = above(&base->directory_text, base->origin_text.end + 1, levels);
        end = from_directory_end(text, start);
        if (end == start) {
            if (start == 0)
                return Py_NewRef(Py_None); /* empty, or a fragment */
            if (is_char(text, 0, start, '?'))
                end = skip(text, 0, start + 1, QUERY);
        }
    }
    if (end < text->end && !is_char(text, 0, end, '#'))
        return Py_NewRef(Py_None);
    return concatenated(prefix, prefix_end, reference, start, end);
}

/* Return the URL of a reference; Py_None if it is not plain. Its fragment is no part of it, and may be of any letters. */
static PyObject *
joined(const Base *base, PyObject *reference)
{
    Text text;
    if (read_ascii(reference, &text) < 0)
        return NULL;
    if (text.narrow)
        return joined_ascii(base, reference, &text);
    Py_ssize_t fragment = PyUnicode_FindChar(reference, '#', 0, text.end, 1);
    if (fragment < 0)
        return fragment == -1 ? Py_NewRef(Py_None) : NULL;
    PyObject *before = PyUnicode_Substring(reference, 0, fragment), *url = NULL;
    if (before && read_ascii(before, &text) == 0)
        url = text.narrow ? joined_ascii(base, before, &text) : Py_NewRef(Py_None);
    Py_XDECREF(before);
    return url;
}

static int
read_base(PyObject *parts, Base *base)
{
    if (!PyTuple_Check(parts) || PyTuple_Size(parts) != 4) {
        PyErr_SetString(PyExc_TypeError, "join_plain() takes a Base");
        return -1;
    }
    base->origin = PyTuple_GetItem(parts, 0); /* borrowed, as all of these */
    base->directory = PyTuple_GetItem(parts, 1);
    base->path = PyTuple_GetItem(parts, 2);
    base->origin_of = PyTuple_GetItem(parts, 3);
    if (read_ascii(base->origin, &base->origin_text) < 0 || read_ascii(base->directory, &base->directory_text) < 0 ||
        read_ascii(base->path, &base->path_text) < 0)
        return -1;
    if (!base->origin_text.narrow || !base->directory_text.narrow || !base->path_text.narrow) {
        PyErr_SetString(PyExc_ValueError, "a canonical URL is ASCII");
        return -1;
    }
    return 0;
}

static PyObject *
scan_join_plain(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Base base;
    (void)module;
    if (count != 4 || !PyList_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "join_plain() takes a list of references, base, longest, most");
        return NULL;
    }
    Py_ssize_t longest = PyLong_AsSsize_t(arguments[2]), most = PyLong_AsSsize_t(arguments[3]);
    if (((longest == -1 || most == -1) && PyErr_Occurred()) || read_base(arguments[1], &base) < 0)
        return NULL;
    PyObject *urls = PyList_New(0);
    int all_fit = 1;
    /* The list may change while `origin_of` runs. */
    for (Py_ssize_t i = 0; urls && most >= 0 && i < PyList_Size(arguments[0]); i++) {
        PyObject *reference = Py_NewRef(PyList_GetItem(arguments[0], i));
        PyObject *url = PyUnicode_GetLength(reference) > longest ? Py_NewRef(Py_None) : joined(&base, reference);
        Py_DECREF(reference);
        Py_ssize_t length = url && url != Py_None ? PyUnicode_GetLength(url) : 0;
        most -= length;
        all_fit = all_fit && length > 0 && length <= longest;
        if (append(urls, url) < 0)
            Py_CLEAR(urls);
    }
    if (!urls)
        return NULL;
    all_fit = all_fit && PyList_Size(urls) == PyList_Size(arguments[0]);
    return Py_BuildValue("NnN", urls, most, PyBool_FromLong(all_fit));
}

/* ---- the links of a page ---- */

static PyObject *
scan_other_origins(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "other_origins() takes urls, origin");
        return NULL;
    }
    PyObject *urls = PyObject_GetIter(arguments[0]), *url, *origin;
    PyObject *origins = urls ? PySet_New(NULL) : NULL;
    while (origins && (url = PyIter_Next(urls))) {
        Py_ssize_t is_own = PyUnicode_Tailmatch(url, arguments[1], 0, PY_SSIZE_T_MAX, -1);
        if (is_own == 0) {
            Py_ssize_t slash = PyUnicode_FindChar(url, '/', 8, PY_SSIZE_T_MAX, 1);
            origin = slash > -2 ? PyUnicode_Substring(url, 0, slash + 1) : NULL;
            is_own = origin ? PySet_Add(origins, origin) : -1;
            Py_XDECREF(origin);
        }
        Py_DECREF(url);
        if (is_own < 0)
            break;
    }
    Py_XDECREF(urls);
    if (PyErr_Occurred())
        Py_CLEAR(origins);
    return origins;
}

/* Record a key in its pair of places, at any address; return whether it was in neither. */
INLINE int
is_new(char *places, uint64_t key)
{
    uint64_t pair[2];
    memcpy(pair, places, sizeof(pair));
    int is_first = pair[0] == key, is_second = pair[1] == key;
    if (!is_first) {
        pair[1] = pair[0];
        pair[0] = key;
        memcpy(places, pair, sizeof(pair));
    }
    return !is_first && !is_second;
}

static PyObject *
scan_remember(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer table;
    (void)module;
    if (count != 3 || !PyList_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "remember() takes table, mask, a list of keys");
        return NULL;
    }
    uint64_t mask = PyLong_AsUnsignedLongLong(arguments[1]);
    if (PyErr_Occurred() || PyObject_GetBuffer(arguments[0], &table, PyBUF_WRITABLE) < 0)
        return NULL;
    PyObject *found = NULL;
    if (mask < (uint64_t)table.len / 16)
        found = PyList_New(0);
    else
        PyErr_SetString(PyExc_IndexError, "the table has fewer pairs");
    for (Py_ssize_t i = 0; found && i < PyList_Size(arguments[2]); i++) {
        PyObject *item = Py_NewRef(PyList_GetItem(arguments[2], i));
        uint64_t key = PyLong_AsUnsignedLongLongMask(item);
        Py_DECREF(item);
        if (key == UINT64_MAX && PyErr_Occurred())
            Py_CLEAR(found);
        else if (is_new((char *)table.buf + 16 * (key & mask), key) && append(found, PyLong_FromSsize_t(i)) < 0)
            Py_CLEAR(found);
    }
    PyBuffer_Release(&table);
    return found;
}

/* ---- the module ---- */

static int
scan_exec(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->runs_type = PyType_FromModuleAndSpec(module, &RUNS_SPEC, NULL);
    return state->runs_type ? 0 : -1;
}

static int
scan_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->runs_type);
    return 0;
}

static int
scan_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->runs_type);
    return 0;
}

static PyMethodDef SCAN_METHODS[] = {
    {"runs", (PyCFunction)(void (*)(void))scan_runs, METH_FASTCALL, NULL},
    {"attributes", scan_attributes, METH_O, NULL},
    {"join_plain", (PyCFunction)(void (*)(void))scan_join_plain, METH_FASTCALL, NULL},
    {"other_origins", (PyCFunction)(void (*)(void))scan_other_origins, METH_FASTCALL, NULL},
    {"remember", (PyCFunction)(void (*)(void))scan_remember, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot SCAN_SLOTS[] = {{Py_mod_exec, scan_exec}, {0, NULL}};
static struct PyModuleDef SCAN = {
    PyModuleDef_HEAD_INIT,
    .m_name = "bigcrawl.scan.compiled",
    .m_size = sizeof(State),
    .m_methods = SCAN_METHODS,
    .m_slots = SCAN_SLOTS,
    .m_traverse = scan_traverse,
    .m_clear = scan_clear,
};

PyMODINIT_FUNC
PyInit_compiled(void)
{
    return PyModuleDef_Init(&SCAN);
}
