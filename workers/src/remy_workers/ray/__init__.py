"""Workers that are actors of a Ray cluster.

`driver` is a process that belongs to the cluster: it starts actors, and makes for each of them the
call to the coordinator that a worker of its own would make. Nothing is kept in Ray that cannot be
made again, so that whatever ends (an actor, a node, the head, the driver) is started anew and the
coordinator gives the tasks to others meanwhile.

What goes through Ray is bytes, serialized Protocol Buffers messages, which Ray passes on as they
are.
"""
