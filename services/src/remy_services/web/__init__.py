"""The farm's page: sessions of its users, the feed of what changes, and the server of both."""
