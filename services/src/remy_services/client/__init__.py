"""What a program needs to talk to a coordinator: address, TLS, token, retries."""
