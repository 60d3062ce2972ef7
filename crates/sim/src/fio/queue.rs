//! The queue of a job as fio counts it.

use super::outcome::Meter;

/// Requests of a job that fio holds: those in flight, and those that are answered and not taken.
///
/// fio takes an answer when its queue is full and it wants to issue another request, one answer at
/// a time. It takes all answers when it waits for what is in flight. Until its answer is taken a
/// request counts in the depth of the queue. So the depths do not depend on how fast the drive is.
pub(super) struct Queue {
    depth: u32,
    depth_max: u32,
    /// Requests issued since the job began, ramp included.
    pub issued: u64,
    /// Answers taken since the job began, ramp included.
    pub taken: u64,
}

impl Queue {
    /// The queue of a job with `iodepth` requests in flight at most.
    pub fn new(iodepth: u32) -> Queue {
        Queue { depth: 0, depth_max: iodepth, issued: 0, taken: 0 }
    }

    /// Takes an answer when the queue is full. To be called when fewer requests than `iodepth` are
    /// in flight, so that there is an answer.
    pub fn make_room(&mut self, meter: &mut Meter) {
        if self.depth == self.depth_max {
            self.take(1, meter);
        }
    }

    /// Counts a request that is issued.
    pub fn issue(&mut self, meter: &mut Meter) {
        self.make_room(meter);
        self.depth += 1;
        self.issued += 1;
        meter.issued(self.depth);
    }

    /// Counts a flush that is issued. As with fio's libaio the flush has left the queue before the
    /// next request is issued.
    pub fn flush(&mut self, meter: &mut Meter) {
        self.make_room(meter);
        meter.flush_issued(self.depth + 1);
    }

    /// Takes the answers one by one while the job waits for the last of them.
    pub fn wait_for_each(&mut self, meter: &mut Meter) {
        while self.depth > 0 {
            self.take(1, meter);
        }
    }

    /// Takes the answers that a pass over the region leaves, all at once. fio has taken one before
    /// when the queue was full.
    pub fn end_pass(&mut self, meter: &mut Meter) {
        self.make_room(meter);
        if self.depth > 0 {
            self.take(self.depth, meter);
        }
    }

    fn take(&mut self, answers: u32, meter: &mut Meter) {
        self.depth -= answers;
        self.taken += u64::from(answers);
        meter.taken(answers);
    }
}
