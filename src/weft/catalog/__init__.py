"""What is registered and what is stored; the one transaction that commits a batch."""
