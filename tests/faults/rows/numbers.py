"""Faults of numbers in lists."""

from support.faults import Fault, line
from support.world import DECODE

FAULTS = [
    Fault(
        "29-feature-nan",
        DECODE,
        r"dev\.kbest:3: expected a decimal number for LM0, found 'nan'",
        {"dev.kbest": line(3, "-7", "nan")},
        cure={"dev.kbest": line(3, "nan", "-7")},
    ),
]
