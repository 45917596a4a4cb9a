"""Files to hand on: reports, notebooks, and reading answers back out of them."""
