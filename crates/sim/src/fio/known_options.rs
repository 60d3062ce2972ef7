//! Which options of fio have a meaning here, which change nothing, and which are refused.

/// Options that change what is simulated or printed.
pub const OPTIONS: &[&str] = &[
    "bs",
    "blocksize",
    "bsrange",
    "blocksize_range",
    "bssplit",
    "description",
    "end_fsync",
    "exitall",
    "fdatasync",
    "filename",
    "fsync",
    "group_reporting",
    "io_limit",
    "io_size",
    "iodepth",
    "ioengine",
    "kb_base",
    "log_avg_msec",
    "log_max_value",
    "log_offset",
    "loops",
    "name",
    "new_group",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "offset_increment",
    "per_job_logs",
    "percentage_random",
    "percentile_list",
    "ramp_time",
    "random_distribution",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "rate",
    "rate_iops",
    "rate_process",
    "readwrite",
    "runtime",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "size",
    "startdelay",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "time_based",
    "wait_for_previous",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "zonemode",
];

/// Options of the zones of `zonemode=zbd` alone.
pub const ZBD_OPTIONS: &[&str] = &[
    "max_open_zones",
    "read_beyond_wp",
    "zone_reset_frequency",
    "zone_reset_threshold",
];

/// Options of the zones of `zonemode=strided`, and the two of `zonemode=zbd` with the same names.
pub const ZONE_OPTIONS: &[&str] = &["zonerange", "zonesize", "zoneskip"];

/// Options that are accepted with any value, and why they change nothing here.
pub const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("allow_file_create", "no file is made"),
    ("allow_mounted_write", "the drive is not mounted"),
    (
        "buffer_compress_chunk",
        "what requests carry does not matter to a model",
    ),
    (
        "buffer_compress_percentage",
        "what requests carry does not matter to a model",
    ),
    (
        "buffer_pattern",
        "what requests carry does not matter to a model",
    ),
    (
        "buffered",
        "a model has no page cache: requests always go to the drive",
    ),
    (
        "clat_percentiles",
        "percentiles of the completion latency are always reported",
    ),
    ("clocksource", "time is virtual"),
    ("cpumask", "jobs need no processor"),
    ("cpus_allowed", "jobs need no processor"),
    ("cpus_allowed_policy", "jobs need no processor"),
    ("create_fsync", "no file is made"),
    ("create_on_open", "no file is made"),
    ("create_serialize", "no file is made"),
    (
        "dedupe_global",
        "what requests carry does not matter to a model",
    ),
    (
        "dedupe_mode",
        "what requests carry does not matter to a model",
    ),
    (
        "dedupe_percentage",
        "what requests carry does not matter to a model",
    ),
    (
        "dedupe_working_set_percentage",
        "what requests carry does not matter to a model",
    ),
    (
        "direct",
        "a model has no page cache: requests always go to the drive",
    ),
    ("directory", "no file is made"),
    (
        "disable_bw",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    (
        "disable_bw_measurement",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    (
        "disable_clat",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    (
        "disable_lat",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    (
        "disable_slat",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    ("disk_util", "the use of the drive is always reported"),
    ("fadvise_hint", "there is no page cache to advise"),
    ("fallocate", "no file is made"),
    ("gtod_cpu", "time is virtual"),
    (
        "gtod_reduce",
        "measuring costs nothing in virtual time, so everything is measured",
    ),
    ("hugepage-size", "requests need no memory"),
    ("invalidate", "there is no page cache to invalidate"),
    ("iomem", "requests need no memory"),
    ("lockmem", "requests need no memory"),
    ("log_entries", "logs grow as they need"),
    ("mem", "requests need no memory"),
    ("nice", "jobs need no processor"),
    ("numa_cpu_nodes", "jobs need no processor"),
    ("numa_mem_policy", "jobs need no processor"),
    ("overwrite", "no file is made"),
    (
        "refill_buffers",
        "what requests carry does not matter to a model",
    ),
    (
        "scramble_buffers",
        "what requests carry does not matter to a model",
    ),
    (
        "serialize_overlap",
        "requests that overlap always wait for each other here",
    ),
    ("softrandommap", "the order of random offsets needs no map"),
    (
        "thinktime_spin",
        "a pause is the same to the drive whether the processor sleeps or spins",
    ),
    ("thread", "threads and processes are the same to the drive"),
    ("unlink", "no file is made"),
    ("unlink_each_loop", "no file is made"),
    (
        "zero_buffers",
        "what requests carry does not matter to a model",
    ),
    (
        "random_generator",
        "there is one generator, as even as any of fio's",
    ),
];

/// Options that are accepted with the values that say what is done here anyway.
pub const WITH_ONE_VALUE: &[(&str, &[&str], &str)] = &[
    (
        "bwavgtime",
        &["500"],
        "the only window of bandwidth figures",
    ),
    ("continue_on_error", &["none", "0"], "an error ends its job"),
    ("do_verify", &["0"], "no data is kept to verify"),
    ("file_append", &["0"], "a drive does not grow"),
    (
        "ignore_zone_limits",
        &["0"],
        "the limit of open zones is that of the drive",
    ),
    (
        "io_submit_mode",
        &["inline"],
        "requests are issued one by one by their job",
    ),
    ("iodepth_batch", &["1"], "requests are issued one by one"),
    (
        "iodepth_batch_submit",
        &["1"],
        "requests are issued one by one",
    ),
    (
        "iodepth_batch_complete",
        &["0", "1"],
        "answers are taken as they come",
    ),
    (
        "iodepth_batch_complete_min",
        &["0", "1"],
        "answers are taken as they come",
    ),
    (
        "iopsavgtime",
        &["500"],
        "the only window of figures of requests",
    ),
    (
        "ioscheduler",
        &["none", "noop"],
        "there is no scheduler above the drive",
    ),
    (
        "lat_percentiles",
        &["0"],
        "percentiles are of the completion latency",
    ),
    ("nrfiles", &["1"], "the drive is the one file"),
    ("slat_percentiles", &["0"], "submission takes no time"),
    (
        "unified_rw_reporting",
        &["none", "0"],
        "directions are reported apart",
    ),
];

/// Options that fio knows and that have no meaning here, and why.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "job_max_open_zones",
        "zones are opened for all jobs together, as `max_open_zones` limits them",
    ),
    (
        "zonecapacity",
        "zones are those of the drive, which can be written to their ends",
    ),
    ("atomic", "no model has atomic writes"),
    ("blockalign", "offsets are multiples of the block size"),
    ("ba", "offsets are multiples of the block size"),
    ("bs_is_seq_rand", "lengths belong to directions"),
    ("bs_unaligned", "a model counts whole blocks"),
    (
        "cgroup",
        "there are no other users of the drive to share it with",
    ),
    ("exec_postrun", "no other program is run"),
    ("exec_prerun", "no other program is run"),
    ("exitall_on_error", "an error ends its job alone"),
    ("file_service_type", "the drive is the one file"),
    ("filename_format", "the drive is the one file"),
    ("filesize", "the drive is the one file, and `size` its part"),
    ("fill_device", "a drive does not say that it is full"),
    ("flow", "jobs do not wait for the pace of one another"),
    (
        "fsync_on_close",
        "the drive is not closed; `end_fsync` does the same",
    ),
    ("latency_run", "the queue depth is not searched for"),
    ("latency_target", "the queue depth is not searched for"),
    ("log_hist_msec", "histograms are not logged"),
    ("log_unix_epoch", "time is virtual"),
    ("max_latency", "a job does not end because of a latency"),
    (
        "merge_blktrace_file",
        "a trace is replayed with `imbrex compare`",
    ),
    ("opendir", "the drive is the one file"),
    ("pre_read", "there is no page cache to fill"),
    ("prio", "no model has priorities"),
    ("prioclass", "no model has priorities"),
    ("profile", "profiles are not followed"),
    ("rate_cycle", "a rate is a limit, not a condition"),
    ("rate_ignore_thinktime", "a rate always counts the pauses"),
    ("rate_iops_min", "a rate is a limit, not a condition"),
    ("rate_min", "a rate is a limit, not a condition"),
    ("read_iolog", "a trace is replayed with `imbrex compare`"),
    (
        "steadystate",
        "the end is not searched for; `runtime` and `ramp_time` state it",
    ),
    ("steadystate_duration", "the end is not searched for"),
    ("steadystate_ramp_time", "the end is not searched for"),
    (
        "sync_file_range",
        "a drive has no ranges of a page cache to write",
    ),
    ("thinktime_iotime", "pauses count requests"),
    ("trim_percentage", "no data is kept to verify"),
    ("verify", "a model keeps no data to verify"),
    ("verify_backlog", "a model keeps no data to verify"),
    ("verify_pattern", "a model keeps no data to verify"),
    ("wait_for", "jobs wait at a `stonewall`"),
    ("write_hist_log", "histograms are not logged"),
    (
        "write_iolog",
        "what is issued is not written down; `imbrex serve --record` does",
    ),
];

/// Engines that keep `iodepth` requests in flight.
pub const ASYNCHRONOUS: &[&str] = &["libaio", "io_uring", "posixaio", "windowsaio"];
/// Engines that make one request at a time, whatever `iodepth` says.
pub const SYNCHRONOUS: &[&str] = &["psync", "sync", "vsync", "pvsync", "pvsync2", "sg"];

/// Every option that has any meaning.
pub(super) fn known_options() -> impl Iterator<Item = &'static str> {
    let plain = OPTIONS.iter().chain(ZONE_OPTIONS).chain(ZBD_OPTIONS);
    plain
        .copied()
        .chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))
        .chain(WITH_ONE_VALUE.iter().map(|(name, _, _)| *name))
}
