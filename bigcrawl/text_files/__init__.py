"""Text files of users, as editors and spreadsheets save them."""
