"""What a customer has bought."""

from cart import total


def confirmation(name, items):
    """The text of the mail that confirms an order."""
    noun = "item" if len(items) == 1 else "items"
    return f"Dear {name}, you have ordered {len(items)} {noun} for {total(items):.2f} EUR."
