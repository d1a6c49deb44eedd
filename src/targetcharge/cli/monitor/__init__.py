"""`tct monitor`: rules from a file, looked at from cron."""
