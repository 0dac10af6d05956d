"""Feature weights from tuning data: pools of scored candidates, exact line search, rounds."""
