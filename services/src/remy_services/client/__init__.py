"""What a program needs to talk to a coordinator: address, TLS, token, deadlines, retries.

`settings_of` puts together how to reach it, a `Connection` carries the calls, `DesignClient` has a
method for each request, `watch_job` follows a job through lost connections, and `doctor`
says what is in the way.
"""
