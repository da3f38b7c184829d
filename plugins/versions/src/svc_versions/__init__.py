"""The versions plugin: snapshots, forks, restore, merge and history of a database.

Requests, commands and the hours of the retention job flow in; each becomes one reading of refs and
documents or one transaction on the kernel's database, and answers in JSON or lines of text flow out.
"""
