"""The network a run may reach: policy, names, the resolver inside, and the broker that makes the connections."""
