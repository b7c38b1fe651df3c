"""What goes over the wire to chat endpoints and comes back: replies read, refusals understood, requests adapted."""
