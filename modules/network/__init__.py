"""What all connections to other machines share."""
