"""The design service: jobs driven through their lives, and the gRPC server in front of them."""
