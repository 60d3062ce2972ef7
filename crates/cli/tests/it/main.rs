//! Integration tests of the command and of the repository as a whole: one binary, one module a topic.

mod bad_bounds;
mod bad_input;
mod bad_serve;
mod bad_values;
mod check_array;
mod check_inspect;
mod check_layers;
#[allow(dead_code)]
#[path = "../../../serve/tests/it/client.rs"]
mod client;
mod compare;
mod control;
mod control_status;
mod crashtest;
mod damaged_end;
mod diff;
mod doctor;
mod drive_bench;
mod drive_fio;
mod drive_fit;
mod experiments;
mod figures;
mod image_members;
mod image_versions;
mod longer_members;
mod mirror;
mod outputs;
mod parity;
mod place;
mod reliability;
mod remote;
mod resumed;
mod serve_array;
mod serve_drive_managed;
mod serve_events;
mod serve_files;
mod serve_lost;
mod serve_members;
mod serve_memory;
mod serve_read_only;
mod serve_report;
mod serve_restart;
mod serve_run;
mod serve_signals;
mod serve_stripe;
mod served;
#[allow(dead_code)]
#[path = "../../../serve/tests/it/support.rs"]
mod support;

mod tidy;
mod tidy_reference;
mod trace_info;
mod trace_mrc;
mod trace_output;
mod trace_page;
mod verdict;
