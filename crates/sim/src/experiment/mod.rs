//! Experiments: TOML to stack, sweeps and runs.
