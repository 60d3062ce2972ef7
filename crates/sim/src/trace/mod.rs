//! Block traces: readers, writers, characterisation and synthesis.
