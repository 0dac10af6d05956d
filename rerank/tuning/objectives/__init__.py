"""What tuning maximises: objectives of summed statistics, and the goal of a search on a line."""
