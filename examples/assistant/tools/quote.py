"""A tool in Python: the function `run` is what the model calls."""

from typing import Literal

PRICES = {"L-100": 149.0, "R-210": 24.5, "R-220": 29.0, "Y-501": 6.25, "Y-502": 7.5}


def run(items: list[str], delivery: Literal["pickup", "standard", "express"] = "pickup"):
    """Work out what items cost, delivery included.

    raddle: read-only

    Args:
        items: The numbers of what is bought, one entry for each piece
        delivery: How it gets to the customer
    """
    unknown = sorted({name for name in items if name not in PRICES})
    if unknown:
        raise ValueError(f"there is no price for {', '.join(unknown)}; known are {', '.join(PRICES)}")
    total = sum(PRICES[name] for name in items) + {"pickup": 0, "standard": 4.9, "express": 12}[delivery]
    return {"items": len(items), "total": round(total, 2), "currency": "EUR"}
