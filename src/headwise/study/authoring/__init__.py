"""What only authors of guides run."""
