"""Forms as sites have them, by what they are for; each is the first form of its page."""

from __future__ import annotations

from typing import Final

SEARCHES: Final = {
    "plain": "<form action=/search><input name=q><input type=submit value=Search></form>",
    "wordpress": '<form role="search" method="get" class="search-form" action="/"><label><span>Search for:</span>'
    '<input type="search" class="search-field" placeholder="Search …" value="" name="s"></label>'
    '<input type="submit" class="search-submit" value="Search"></form>',
    "mediawiki": "<form action=/w/index.php id=searchform><input type=hidden name=title value=Special:Search>"
    "<input name=search placeholder='Search the wiki' accesskey=f><button name=fulltext value=1>Search</button>"
    "<button name=go value=Go>Go</button></form>",
    "library": "<form action='/catalogue'><select name=index><option value=ti>Title<option value=au>Author</select>"
    "<input type=text name=keywords><input type=submit value='Search the catalogue'></form>",
    "two_selects": "<form action=/adverts/search method=GET><input name=what placeholder='What?'><select name=region>"
    "<option value=''>All<option>North<option>South</select><select name=category><option value=''>All<option>Cars"
    "</select><button type=submit>Find</button></form>",
    "german": "<form action=/suche accept-charset=latin1><input name=suchbegriff><button>Suchen</button></form>",
    "french": "<form action=/index.php><input type=hidden name=page value=recherche><input name=mot>"
    "<input type=submit value=Rechercher></form>",
    "spanish": "<form action=/buscador><input name=texto><input type=image src=lupa.png alt=Buscar></form>",
    "russian": "<form action=/p><input name=w placeholder='Найти документ'><input type=submit value=Поиск></form>",
    "no_action": "<form><input type=search name=q></form>",
    "empty_method": "<form method='' action='find'><input name=term><button>Go</button></form>",
    "upper_case": "<FORM ACTION=/SEARCH METHOD=GET><INPUT NAME=Q TYPE=TEXT><INPUT TYPE=SUBMIT></FORM>",
    "autocomplete_off": "<form action=/search><input name=q autocomplete=off><button>Search</button></form>",
    "facets": "<form action=/browse class=filter-form><input type=checkbox name=open value=1> Open only"
    "<select name=year><option>2019<option>2020</select><button>Filter</button></form>",
    "dates": "<form action=/archive/search><input name=text><input type=date name=from><input type=date name=to>"
    "<button>Search the archive</button></form>",
    "range": "<form action=/find><input name=q><input type=number name=min><input type=number name=max></form>",
    "query_label": "<form action=/db><label>Query</label><input name=x><input type=submit></form>",
    "case_of_names": "<form action=/Results><input name=searchTerm><input type=submit value=Go></form>",
    "ordered": "<form action=/search><input name=q><label>Order by</label><select name=order><option>date<option>title"
    "</select><button>Search</button></form>",
    "address_is_no_add": "<form action=/search><input name=place placeholder='Address or place'><button>Find</button>"
    "</form>",
    "unclosed": "<form action=/search><input name=q><button>Search",
    "quoted_sign": "<form action=/search data-x='a>b'><input value='a > b' name=q title=\"1 > 0\"><button>Go</form>",
    "select_alone": "<form action=/finder><select name=town><option value=1>A<option value=2>B</select>"
    "<input type=submit value='Show'></form>",
}

# Each with the refusal that is due.
OTHERS: Final = {
    "login": ("<form action=/login method=post><input name=user><input type=password name=p><button>Go</form>", "post"),
    "login_get": ("<form action=/s><input name=q><input type=password name=p><button>Search</form>", "field-password"),
    "login_without_password": ("<form action=/start><input name=username><button>Search</form>", "personal"),
    "login_words": ("<form action=/x><input name=q placeholder=Search><button>Log in</button></form>", "changing"),
    "registration": ("<form action=/register><input name=search><button>Go</form>", "changing"),
    "payment": ("<form action=/search><input name=q autocomplete=cc-number><button>Search</form>", "autocomplete"),
    "payment_names": ("<form action=/search><input name=q><input name=cvv><button>Search</form>", "personal"),
    "donation": ("<form action=/find><input name=q><button>Donate now</button></form>", "changing"),
    "address": ("<form action=/find><input name=q autocomplete='shipping street-address'></form>", "autocomplete"),
    "one_time_code": ("<form action=/find><input name=q autocomplete=one-time-code></form>", "autocomplete"),
    "upload": ("<form action=/search><input name=q type=search><input type=file name=image></form>", "field-file"),
    "multipart": ("<form action=/search enctype=multipart/form-data><input name=q></form>", "encoding"),
    "plain_text": ("<form action=/search enctype=text/plain><input name=q></form>", "encoding"),
    "comment": ("<form action=/search><input name=q><textarea name=x></textarea></form>", "field-textarea"),
    "contact": ("<form action=/search><input name=q><input type=email name=e></form>", "field-email"),
    "contact_words": ("<form action=/contact><input name=query><button>Search</form>", "changing"),
    "telephone": ("<form action=/search><input name=q><input type=tel name=t></form>", "field-tel"),
    "newsletter": ("<form action=/list><input name=q placeholder='Your e-mail'><button>Search</form>", "personal"),
    "newsletter_words": ("<form action=/search><input name=q><button>Subscribe</button></form>", "changing"),
    "newsletter_name": ("<form id=newsletterForm action=/search><input name=q></form>", "changing"),
    "unsubscribe": ("<form action=/unsubscribe><input name=q type=search></form>", "changing"),
    "delete": ("<form action=/search/delete><input name=q><button>Search</form>", "changing"),
    "delete_action": ("<form action=/s><input name=q><input type=hidden name=action value=delete></form>", "changing"),
    "method_override": ("<form action=/s><input name=q><input type=hidden name=_method value=PUT></form>", "changing"),
    "logout": ("<form action=/search><input name=q><button>Log out</button></form>", "changing"),
    "cart": ("<form action=/search class=add-to-cart><input name=q></form>", "changing"),
    "quantity": ("<form action=/search><input name=q><input name=qty value=1></form>", "personal"),
    "order": ("<form action=/search><input name=q><button>Order now</button></form>", "changing"),
    "vote": ("<form action=/vote><input name=q type=search></form>", "changing"),
    "rating": ("<form action=/search><input name=q><button name=rate value=5>5</button></form>", "changing"),
    "edit": ("<form action=/wiki/edit><input name=search></form>", "changing"),
    "token": ("<form action=/search><input name=q><input type=hidden name=csrf_token value=1></form>", "token"),
    "button_elsewhere": ("<form action=/search><input name=q><button formaction=/delete>x</form>", "other-action"),
    "captcha": ("<form action=/search><input name=q><input name=captcha></form>", "personal"),
    "consent": ("<form action=/search><input name=q><input type=checkbox name=agree value=1></form>", "personal"),
    "language": ("<form action=/lang><select name=lang><option>de<option>en</select></form>", "no-sign-of-search"),
    "calculator": ("<form action=/calc><input name=a><input name=b><button>=</button></form>", "no-sign-of-search"),
    "button_alone": ("<form action=/search><button>Search</button></form>", "nothing-to-fill"),
    "dialog": ("<form method=dialog action=/search><input name=q></form>", "not-sent"),
    "script": ("<form action='javascript:find()'><input name=q></form>", "not-sent"),
    "mail": ("<form action='mailto:a@b.example'><input name=search></form>", "not-sent"),
    "post": ("<form action=/search method=post><input name=q><button>Search</button></form>", "post"),
    "outside_control": (
        "<form id=f action=/search><input name=q></form><input type=password name=p form=f>",
        "field-password",
    ),
    "unclosed_to_a_password": ("<form action=/search><input name=q><p><input type=password name=p>", "field-password"),
    "many_texts": ("<form action=/search>" + "".join(f"<input name=a{n}>" for n in range(7)), "too-many-texts"),
    "many_fields": ("<form action=/search><input name=q>" + "<input type=hidden name=h>" * 99, "too-large"),
    "colour": ("<form action=/search><input name=q><input type=color name=c></form>", "field"),
}


# As common software and sites have them; they were tried after the lists of words had been written.
SEARCHES_OF_SITES: Final = {
    "drupal": "<form class='search-block-form' data-drupal-selector='search-block-form' action='/search/node' "
    "method='get' id='search-block-form' accept-charset='UTF-8'><div class='js-form-item form-item'>"
    "<label for='edit-keys' class='visually-hidden'>Search</label>"
    "<input title='Enter the terms you wish to search for.' type='search' id='edit-keys' name='keys' "
    "value='' size='15' maxlength='128' class='form-search'></div><div class='form-actions'>"
    "<input class='search-form__submit button form-submit' type='submit' id='edit-submit' value='Search'>"
    "</div></form>",
    "dspace": "<form method='get' action='/simple-search'><input type='hidden' name='location' value=''>"
    "<label for='tlocation'>Search:</label><select name='location' id='tlocation'>"
    "<option selected value='/'>All of DSpace</option><option value='123/4'>Community</option>"
    "</select><label for=query>for</label>"
    "<input type='text' size='50' id='query' name='query' value=''>"
    "<input type='submit' value='Go' class='btn btn-primary'></form>",
    "catalogue": "<form name='searchform' method='get' action='/cgi-bin/catalogue-search.pl' id='searchform' "
    "class='form-inline'><label for='masthead_search'> Search </label>"
    "<select name='idx' id='masthead_search'><option value=''>Library catalog</option>"
    "<option value='ti'>Title</option><option value='au'>Author</option><option value='su'>"
    "Subject</option></select>"
    "<input type='text' title='Type search term' id='translControl1' name='q'>"
    "<button type='submit' id='searchsubmit' class='btn btn-primary'>Go</button></form>",
    "discovery": "<form id='searchForm' class='searchForm navbar-form navbar-left flip' method='get' "
    "action='/discovery/Search/Results' name='searchForm' autocomplete='off'>"
    "<input id='searchForm_lookfor' class='searchForm_lookfor search-query form-control ac-auto' "
    "type='text' name='lookfor' value='' aria-label='Search terms'>"
    "<select id='searchForm_type' class='searchForm_type form-control' name='type'>"
    "<option value='AllFields'>All Fields</option><option value='Title'>Title</option></select>"
    "<button type='submit' class='btn btn-default'><i class='fa fa-search'></i> Find</button></form>",
    "shop": "<form action='/search' method='get' class='header__search' role='search'>"
    "<input type='hidden' name='type' value='product'>"
    "<input type='text' name='q' placeholder='Search our store' aria-label='Search our store'>"
    "<button type='submit'>Submit</button></form>",
    "gov": "<form action='https://a.example/publications' method='get'><fieldset><legend>"
    "Filter publications</legend><label>Keyword</label><input name='keyword' type='text'><label>"
    "Publication type</label><select name='type'><option value='all'>All</option>"
    "<option value='guidance'>Guidance</option></select><label>Published after</label>"
    "<input type='text' name='from_date' placeholder='e.g. 01/01/2014'><button>"
    "Refresh results</button></fieldset></form>",
    "jobs": "<form action='/jobs' method='get' id='whatWhere'>"
    "<input name='q' id='what' placeholder='Job title, keywords, or company'>"
    "<input name='l' id='where' placeholder='City or postcode'>"
    "<input type='submit' value='Find jobs'></form>",
    "museum": "<form action='/collection/results/' class='collection-search'>"
    "<input type='text' name='qs' value='' placeholder='Search the collection'><select name='dept'>"
    "<option>Prints</option></select><input type='checkbox' name='onview' value='1'>"
    "<button type='submit'>Search</button></form>",
    "court": "<form name='decisions' action='recherche.aspx' method='get'><input type='text' name='motscles'>"
    "<select name='juridiction'><option value=''>Toutes</option><option value='CC'>Cour</option>"
    "</select><input type='submit' value='Lancer la recherche'></form>",
    "phone-dir": "<form action='/suche/' method='get'><input name='was' placeholder='Was?'>"
    "<input name='wo' placeholder='Wo?'><button title='Finden'>&nbsp;</button></form>",
    "recipe": "<form id='search' action='/rezepte'><input type='search' name='text'><button>"
    "Rezepte finden</button></form>",
    "github": "<form action='/search/advanced' method='get'>"
    "<input type='text' name='q' placeholder='Search repositories'><button type='submit'>"
    "Search</button></form>",
    "species": "<form action='/browse.php' method='get'><select name='family'><option value=1>A</option>"
    "<option value=2>B</option></select><input type='submit' value='Browse species'></form>",
}

OTHERS_OF_SITES: Final = {
    "woocart": "<form class='cart' action='/product/x/' method='post' enctype=multipart/form-data>"
    "<input type='number' name='quantity' value='1'>"
    "<button type='submit' name='add-to-cart' value='33'>Add to cart</button></form>",
    "woocart_get": "<form class='variations' action='/product/x/'><select name='attribute_size'><option>S</option>"
    "</select><button type='submit' name='add-to-cart' value='33'>Add to basket</button></form>",
    "mailchimp": "<form action='https://a.example/subscribe/post' method='post'><input type='email' name='EMAIL'>"
    "<input type='submit' value='Subscribe'></form>",
    "mailchimp_get": "<form action='/signup' method='get'>"
    "<input type='text' name='EMAIL' placeholder='you@example.com'><button>Keep me posted</button>"
    "</form>",
    "wpcomment": "<form action='/wp-comments-post.php' method='post'><textarea name='comment'></textarea>"
    "<input name='author'><input name='email'></form>",
    "phpbblogin": "<form action='./ucp.php?mode=login' method='post'><input type='text' name='username'>"
    "<input type='password' name='password'></form>",
    "wikiedit": "<form action='/w/index.php' method='get' class='createbox'>"
    "<input type='hidden' name='action' value='edit'><input type='text' name='title'>"
    "<input type='submit' value='Create page'></form>",
    "like": "<form action='/posts/5/like' method='get'><button>Like</button></form>",
    "logout": "<form action='/session/destroy' method='get'><input type='submit' value='Sign out'></form>",
    "coupon": "<form action='/checkout' method='get'>"
    "<input type='text' name='coupon_code' placeholder='Coupon code'><button>Apply coupon</button>"
    "</form>",
    "pw_reset": "<form action='/forgot' method='get'>"
    "<input type='text' name='login_name' placeholder='Find your account'><button>Search</button>"
    "</form>",
    "poll": "<form action='/poll.php' method='get'><input type='radio' name='choice' value='1'>"
    "Yes<input type='radio' name='choice' value='2'>No<input type='submit' value='Vote'></form>",
    "unsub": "<form action='/optout' method='get'>"
    "<input type='text' name='address' placeholder='E-mail address'>"
    "<input type='submit' value='Remove me'></form>",
    "order_status": "<form action='/orders/lookup' method='get'><input name='order_no'><input name='zip'><button>"
    "Find order</button></form>",
    "cookie": "<form action='/cookies' method='get'><input type='checkbox' name='marketing'>"
    "<button name='accept' value='all'>Accept all</button></form>",
    "locale": "<form action='/set_locale' method='get'><select name='locale'><option>en</option><option>"
    "de</option></select><button>Go</button></form>",
    "booking": "<form action='/book' method='get'><input type='date' name='from'><input type='date' name='to'>"
    "<select name='guests'><option>1</option></select><button>Book now</button></form>",
    "asp": "<form method='post' action='./default.aspx'><input type='hidden' name='__VIEWSTATE' value='x'>"
    "<input name='txtSearch'><input type='submit' value='Search'></form>",
    "chat": "<form action='/chat' method='get'><input name='msg' placeholder='Say something'><button>"
    "Send</button></form>",
    "short": "<form action='/shorten' method='get'><input name='url' placeholder='Paste a link'><button>"
    "Shorten</button></form>",
    "sms": "<form action='/app' method='get'><input name='number' type='tel'><button>Text me the app</button></form>",
    "delete_search": "<form action='/saved-searches/7' method='get'><input type='hidden' name='do' value='delete'>"
    "<button>Remove search</button></form>",
    "rsvp": "<form action='/event/1' method='get'><input name='name'><select name='answer'><option>"
    "yes</option></select><button>RSVP</button></form>",
}
