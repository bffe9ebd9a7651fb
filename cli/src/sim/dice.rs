//! Seeded numbers: eight bytes of state for each request, the same on every machine and in every release.
//!
//! Called by everything in [`sim`](crate::sim) that chooses: delays, words, identifiers, where to cut.

use std::convert::Infallible;

use rand::TryRng;

/// A small generator (splitmix64); not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Makes the generator that belongs to `seed` and `purpose`, so that two purposes of one seed are unrelated.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self(mix(seed ^ mix(purpose)))
    }

    /// Draws a number below `bound`; 0 for a bound of 0.
    ///
    /// The modulo's bias is below 2⁻³² for every bound used here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let Ok(bound) = u64::try_from(bound) else {
            return 0;
        };
        usize::try_from(self.draw().checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }

    /// Draws 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

impl TryRng for Dice {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.draw() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.draw())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
        Ok(())
    }
}

/// Spreads the bits of a number; equal inputs give equal outputs, near ones give unrelated ones.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(GOLDEN);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The increment of splitmix64: 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        // The first number that the published splitmix64 gives for a seed of 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        // Written down once: a change here changes every recorded stream.
        assert_eq!(Dice::new(7, 1).draw(), 0xddcd_50e4_079d_a4c6);
    }

    #[test]
    fn purposes_and_seeds_are_unrelated() {
        let draws: std::collections::HashSet<u64> =
            (0..64).flat_map(|seed| (0..64).map(move |purpose| Dice::new(seed, purpose).draw())).collect();
        assert_eq!(draws.len(), 64 * 64);
    }

    #[test]
    fn a_bounded_draw_stays_below_its_bound() {
        let mut dice = Dice::new(1, 2);
        assert!((0..1_000).all(|_| dice.below(7) < 7));
        assert_eq!(dice.below(0), 0);
    }
}
