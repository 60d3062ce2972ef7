//! How long disks live and how long repairs take, as they are drawn.

use imbrex_core::rng::Rng;

/// Lives by Weibull: of shape 1 exponential, below it disks fail early, above it they wear out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lives {
    shape: f64,
    scale_h: f64,
}

impl Lives {
    /// Of a shape, with this mean.
    pub fn new(shape: f64, mean_h: f64) -> Lives {
        Lives { shape, scale_h: mean_h / libm::tgamma(1.0 + 1.0 / shape) }
    }

    /// The whole life of a disk that is `age_h` old and lives.
    pub fn draw(&self, age_h: f64, rng: &mut Rng) -> f64 {
        if self.shape == 1.0 {
            return age_h + exponential(self.scale_h, rng);
        }
        let passed = if age_h > 0.0 { libm::pow(age_h / self.scale_h, self.shape) } else { 0.0 };
        let all = passed + exponential(1.0, rng);
        self.scale_h * libm::pow(all, 1.0 / self.shape)
    }
}

/// How long a repair takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Repairs {
    /// Exponential with this mean, in hours.
    Exponential(f64),
    /// Always so many hours: as it was measured.
    Measured(f64),
}

impl Repairs {
    /// All of a repair that has taken `passed_h` and has not ended.
    pub fn draw(&self, passed_h: f64, rng: &mut Rng) -> f64 {
        match *self {
            Repairs::Exponential(mean_h) => passed_h + exponential(mean_h, rng),
            Repairs::Measured(hours) => hours,
        }
    }
}

/// A number above 0 and at most 1.
pub fn share(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

fn exponential(mean: f64, rng: &mut Rng) -> f64 {
    -mean * libm::log(share(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_of_all_shapes_have_the_mean_that_was_asked_for() {
        for shape in [0.7, 1.0, 1.5] {
            let (lives, mut rng) = (Lives::new(shape, 1000.0), Rng::new(1, 0));
            let draws = 200_000;
            let all: f64 = (0..draws).map(|_| lives.draw(0.0, &mut rng)).sum();
            let mean = all / f64::from(draws);
            assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{shape}: {mean}");
        }
    }

    /// Of the disks of this age, as many live on as of all that are drawn new and reach it.
    #[test]
    fn what_is_drawn_again_at_an_age_is_what_was_left() {
        let (lives, mut rng) = (Lives::new(1.5, 1000.0), Rng::new(2, 0));
        let new: Vec<f64> = (0..200_000).map(|_| lives.draw(0.0, &mut rng)).collect();
        let reached: Vec<&f64> = new.iter().filter(|life| **life > 800.0).collect();
        let of_new = reached.iter().filter(|life| ***life > 1500.0).count() as f64;
        let again = (0..100_000).filter(|_| lives.draw(800.0, &mut rng) > 1500.0).count() as f64;
        let difference = of_new / reached.len() as f64 - again / 1e5;
        assert!(difference.abs() < 0.01, "{difference}");
    }
}
