"""Sections of the page, from top to bottom: each from findings to markup."""
