import unittest

from cart import total


class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(["R-210", "W-001"]), 2950)
