//! Jobs of fio on drive models.

mod jobs;
