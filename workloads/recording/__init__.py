"""What `workloads/record.py` is made of: a device, a memory limit, a used file system, and the recipes."""
