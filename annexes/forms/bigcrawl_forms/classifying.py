"""Distinguishes search forms from all others, which are never sent.

A form is a search form if something says so (its name, its role, the name of its text field, its button), and nothing
speaks against it. What speaks against it is said in `refusal_of`: one sign is enough, because a form that changes
something on a site costs more than a search form that is missed.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bigcrawl_forms.reading import Field, Form

TEXTS_MAX: Final = 6
"""Text fields of an extended search, at most."""

TEXT_KINDS: Final = frozenset(("text", "search"))
_PLAIN_KINDS: Final = frozenset(
    ("text", "search", "hidden", "checkbox", "radio", "select", "submit", "button", "reset", "image")
) | {"number", "range", "date", "month", "week", "time", "datetime-local"}


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of names, labels, paths and values. A word counts as a whole: "add" is not in "address".
_SEARCH: Final = split_words(
    "search searches searching searchform searchbox find finder query lookup browse filter suche suchen suchbegriff "
    "finden recherche rechercher chercher buscar busca busqueda buscador cerca ricerca zoeken zoek szukaj hledat sok "
    "ara pesquisa pesquisar поиск найти 検索 搜索"
)
_SEARCH_NAMES: Final = split_words(
    "q qs qry query s search keyword keywords kw term terms searchterm searchtext searchquery searchstring suche "
    "suchbegriff find text words phrase wd"
)
_PERSONAL_NAMES: Final = split_words(
    "email mail emailaddress phone telephone tel mobile password passwd pwd pass passphrase pin otp username user "
    "login userid firstname lastname fullname surname cardnumber cardholder ccnumber creditcard cvv cvc cvv2 iban "
    "bic ssn birthday dob comment comments message msg body captcha recaptcha hcaptcha amount quantity qty honeypot "
    "agree accept consent gdpr privacy optin newsletter subscribe"
)
_SECRET_NAMES: Final = split_words(
    "csrf csrftoken xsrf csrfmiddlewaretoken authenticitytoken requestverificationtoken nonce wpnonce formtoken sesskey"
)
_CHANGING: Final = split_words(
    "login logon signin signup signout logout logoff register registration registrieren anmelden anmeldung abmelden "
    "connexion inscription auth authenticate password subscribe subscription unsubscribe newsletter abonnieren abonner "
    "delete remove destroy löschen supprimer eliminar borrar trash cart basket warenkorb panier carrito checkout buy "
    "purchase kaufen acheter comprar pay payment bezahlen donate donation spenden vote voting poll survey rate rating "
    "review unlike follow unfollow favorite favourite bookmark wishlist comment comments reply kommentar contact "
    "kontakt contacto feedback guestbook message messages send senden envoyer enviar invite share upload import report "
    "flag edit update save speichern create insert add modify change settings preferences profile account post publish "
    "booking reserve reservation buchen bestellen enroll enrol bid confirm approve reject ban rename "
    "install captcha admin"
)
_CHANGING_PATHS: Final = _CHANGING | {"new", "like", "order"}
_ORDERED: Final = frozenset(("by", "sort", "asc", "desc", "nach", "par", "por"))
# Placeholders are sentences, so only the plainest words count there.
_PERSONAL_WORDS: Final = split_words(
    "mail email password passwort login username comment message coupon voucher newsletter subscribe phone"
)
_METHODS: Final = frozenset(("put", "patch", "delete", "post"))
# Values of autocomplete that a field of a search form may have.
_HARMLESS_AUTOCOMPLETE: Final = frozenset(("", "on", "off", "false", "true", "search", "nope", "no"))
_NAMES_OF_CHANGES: Final = frozenset(
    ("action", "op", "do", "cmd", "command", "task", "mode", "act", "event", "_method")
)
_words_in = re.compile(r"[^\W\d_]+").findall
_hump = re.compile(r"(?<=[a-z])(?=[A-Z])")


def words_of(text: str) -> list[str]:
    """Return the words of a name, path or label in lower case: `searchForm`, `search-form` have two."""
    return [word.casefold() for word in _words_in(_hump.sub(" ", text[:500]))]


def refusal_of(form: Form, action: str, *, post_allowed: bool = False) -> str:
    """Return why a form must not be sent; empty if it is a search form.

    Args:
        form: as `forms_of` returns it.
        action: the absolute URL that it is sent to.
        post_allowed: whether a rule of the user names this form, so that POST is allowed. All other checks apply.
    """
    for check in (_method_refusal, _field_refusal, _word_refusal):
        if refusal := check(form, action, post_allowed):
            return refusal
    if not any(one.kind in TEXT_KINDS or one.kind == "select" for one in form.fields if one.name):
        return "nothing-to-fill"
    if sum(one.kind in TEXT_KINDS for one in form.fields) > TEXTS_MAX:
        return "too-many-texts"
    return "" if _is_for_search(form, action) else "no-sign-of-search"


def search_field_of(form: Form) -> Field | None:
    """Return the text field for the query's words; None for a form that has only selects."""
    texts = [one for one in form.fields if one.kind in TEXT_KINDS and one.name and "readonly" not in one.attributes]
    return max(texts, key=_likeness, default=None)


def method_of(form: Form) -> str:
    return (form.attributes.get("method", "").strip() or "get").lower()


def _method_refusal(form: Form, action: str, post_allowed: bool) -> str:
    if form.is_cut:
        return "too-large"
    method = method_of(form)
    if method not in ("get", "post") or not action.startswith(("http://", "https://")):
        return "not-sent"
    if method == "post" and not post_allowed:
        return "post"
    if form.attributes.get("enctype", "").strip().lower() not in ("", "application/x-www-form-urlencoded"):
        return "encoding"
    return ""


def _field_refusal(form: Form, action: str, post_allowed: bool) -> str:
    for one in form.fields:
        if one.kind not in _PLAIN_KINDS:
            return f"field-{one.kind}" if one.kind in ("password", "file", "email", "tel", "textarea") else "field"
        if _autocomplete_is_personal(one):
            return "autocomplete"
        named = words_of(one.name)
        joined = "".join(named)
        if one.kind != "submit" and (joined in _PERSONAL_NAMES or _PERSONAL_NAMES.intersection(named)):
            return "personal"
        if one.kind == "hidden" and (joined in _SECRET_NAMES or _SECRET_NAMES.intersection(named)):
            return "token"
        if any(name in one.attributes for name in ("formaction", "formmethod", "formenctype")):
            return "other-action"
        if one.kind == "hidden" and one.name.lower() in _NAMES_OF_CHANGES:
            said = words_of(one.value)
            if _CHANGING.intersection(said) or one.value.lower() in _METHODS:
                return "changing"
    return ""


def _word_refusal(form: Form, action: str, post_allowed: bool) -> str:
    parts = urlsplit(action)
    if _has_any(_CHANGING_PATHS, (parts.path, parts.query)):
        return "changing"
    texts = [*_own_names(form), *form.labels, *(one.name for one in form.fields if one.kind in ("submit", "image"))]
    if _has_any(_CHANGING, texts) or any(_is_an_order(words_of(text)) for text in texts):
        return "changing"
    said = [text for one in form.fields if one.kind in TEXT_KINDS for text in _texts_of(one)]
    return "personal" if _has_any(_PERSONAL_WORDS, said) else ""


def _has_any(signs: frozenset[str], texts: Iterable[str]) -> bool:
    """Return whether a text has one of these words, perhaps written as two: `Log in`."""
    for text in texts:
        words = words_of(text)
        if not signs.isdisjoint(words) or not signs.isdisjoint(map("".join, pairwise(words))):
            return True
    return False


def _is_an_order(words: list[str]) -> bool:
    return "order" in words and _ORDERED.isdisjoint(words)


def _is_for_search(form: Form, action: str) -> bool:
    if form.attributes.get("role", "").strip().lower() == "search":
        return True
    texts: list[str] = [urlsplit(action).path, *_own_names(form), *form.labels]
    for one in form.fields:
        if one.kind == "search":
            return True
        if one.kind == "text":
            if "".join(words_of(one.name)) in _SEARCH_NAMES:
                return True
            texts += [one.name, *_texts_of(one)]
    return any(not _SEARCH.isdisjoint(words_of(text)) for text in texts)


def _likeness(one: Field) -> int:
    """Return a score of how likely a text field is that of a search."""
    said = [word for text in _texts_of(one) for word in words_of(text)]
    return (
        4 * (one.kind == "search")
        + 3 * ("".join(words_of(one.name)) in _SEARCH_NAMES)
        + 2 * (not _SEARCH.isdisjoint(words_of(one.name)))
        + (not _SEARCH.isdisjoint(said))
    )


def _own_names(form: Form) -> Iterator[str]:
    for name in ("id", "class", "name", "aria-label", "title"):
        if value := form.attributes.get(name):
            yield value


def _texts_of(one: Field) -> Iterable[str]:
    return [one.attributes[name] for name in ("placeholder", "aria-label", "title", "id") if name in one.attributes]


def _autocomplete_is_personal(one: Field) -> bool:
    return one.attributes.get("autocomplete", "").strip().lower() not in _HARMLESS_AUTOCOMPLETE
