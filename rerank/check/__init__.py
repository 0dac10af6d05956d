"""What is wrong with the files of a run, what they hold, and clean copies of them."""
