"""What things cost."""

PRICES = {"R-210": 2450, "W-001": 500, "S-033": 99}


def price(sku):
    """The price of one piece in cents."""
    return PRICES[sku]
