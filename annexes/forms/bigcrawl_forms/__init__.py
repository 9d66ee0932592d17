"""Fills the search forms of sites, and fetches the records behind them: a spider for the hidden web.

reading      the forms of a page
classifying  which of them are search forms, and why the others are left alone
submitting   the request of a query
results      the records and the next page of an answer
terms        the words of texts and word lists
selecting    which query is expected to bring most new records
estimating   how many records there are (capture and recapture)
campaign     what is known of one form, folded from its journal
journal      that state on disk
disk         the threads that read and write it
spider       `FormsSpider`
"""
