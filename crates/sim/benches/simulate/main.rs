//! `make bench`: how fast one thread simulates, and in how much memory. docs/performance.md says what
//! each figure means.
//!
//! With an argument it is a child of itself that fills one structure and prints its peak memory, or a reader of one
//! trace (`scripts/bench_reading.py`).

mod memory;
mod rates;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map_or("", String::as_str);
    if argument(0) == memory::CHILD {
        return memory::child(argument(1), argument(2));
    }
    if argument(0) == rates::READER {
        return rates::read_trace(argument(1));
    }
    // `cargo bench NAME` runs the parts whose name contains NAME; cargo itself adds `--bench`.
    let wanted = |name: &str| {
        let mut filters = arguments.iter().filter(|text| !text.starts_with("--")).peekable();
        filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()))
    };
    rates::print(&wanted);
    memory::print(&wanted);
}
