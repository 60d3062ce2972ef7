//! The operating-system side: NBD connections, real files, wall clock.
