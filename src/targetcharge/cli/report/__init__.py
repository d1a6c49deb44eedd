"""`tct report`: one page about a ledger, to hand to somebody who was not there. From public facts alone."""
