"""The web page of the server: its files, and the doors that serve them."""
