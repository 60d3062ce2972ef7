//! Jobs of fio on drive models.

mod files;
mod jobs;
mod zoned;
