"""Requisites: what a page needs to be shown, such as pictures, styles, fonts and scripts, is fetched soon after it."""
