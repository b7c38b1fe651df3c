"""What stands between the network and the doors: hosts, origins, keys, rates, bodies and headers."""
