"""Commands on a table file with a ledger beside it: `tct ask`, `watch`, `top`, `meter` and `describe`."""
