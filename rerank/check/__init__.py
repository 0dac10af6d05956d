"""What searches files and texts for faults, and offers cures."""
