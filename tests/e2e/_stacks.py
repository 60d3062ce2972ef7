"""Stacks that no file ships, as TOML without a name."""

MEMORY = """
size = "64 MiB"

[[node]]
name = "ram"
kind = "disk"
media = "memory"
size = "64 MiB"
survives = "power"

[[node]]
name = "cmr"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "cache"
kind = "write-back-cache"
below = { flash = "ram", backing = "cmr" }
capacity = "2 MiB"
policy = "lru"
"""


def two_caches(flash_mib, capacity):
    """A span of two caches, `left` and `right`, on slices of two disks."""
    disks = "".join(f"""
[[node]]
name = "{name}"
kind = "disk"
drive = "{drive}"
""" for name, drive in (("smr", "st5000as0011"), ("ssd", "pblaze4")))
    windows = "".join(f"""
[[node]]
name = "{name}-smr"
kind = "slice"
below = "smr"
offset = "{number * 2} GiB"
size = "2 GiB"

[[node]]
name = "{name}-ssd"
kind = "slice"
below = "ssd"
offset = "{number * flash_mib} MiB"
size = "{flash_mib} MiB"

[[node]]
name = "{name}-translation"
kind = "persistent-cache"
below = "{name}-smr"
bands = "uniform:17MiB..36MiB"
persistent_cache = "16 MiB"

[[node]]
name = "{name}"
kind = "write-back-cache"
below = {{ flash = "{name}-ssd", backing = "{name}-translation" }}
capacity = "{capacity}"
policy = "lru"
""" for number, name in enumerate(("left", "right")))
    return disks + windows + """
[[node]]
name = "device"
kind = "span"
below = ["left", "right"]
"""


def stripe_with(backing):
    """A stripe of two disks, of which `there` is a file or block device elsewhere."""
    return f"""
[[node]]
name = "here"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "there"
kind = "disk"
drive = "cmr-500gb-7200"
backing = "{backing}"

[[node]]
name = "array"
kind = "stripe"
below = ["here", "there"]
chunk = "4KiB"
"""
