//! Jobs of fio on drive models.

mod counts;
mod files;
mod jobs;
mod zoned;
