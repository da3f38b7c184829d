"""Schedules: a file of the user tree says which tasks are enqueued when.

``configuration`` reads and checks the file, ``times`` knows when an expression is due, ``store`` changes the
file, ``scheduler`` enqueues what is due.
"""
