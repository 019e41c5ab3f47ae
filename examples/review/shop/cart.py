"""What a customer wants to buy."""

from prices import price


def total(items):
    """What all items cost in cents. From ten items on they cost a tenth less."""
    amount = sum(price(sku) for sku in items)
    if len(items) >= 10:
        amount = amount * 0.9
    return amount
