"""The pages of tasks and schedules in the portal, for root: what runs, what is to run, and how it went."""
