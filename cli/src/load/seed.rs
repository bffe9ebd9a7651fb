//! Random numbers that follow from a seed alone, whatever the platform or the version of a package: shards on several
//! machines must draw the same. The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, 2014), which is plenty for arrival times and words.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    state: u64,
}

impl Seed {
    /// Begins the sequence of `seed` for one purpose; sequences of two purposes have nothing in common.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut own = Self { state: seed };
        own.state = own.next() ^ purpose;
        own
    }

    /// Returns the next number.
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which must not be 0; the bias is below `bound` / 2⁶⁴.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // The product of two 64-bit numbers, shifted by 64, is below `bound` and fits.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Returns an exponentially distributed number with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        // 53 random bits, in (0, 1]: the logarithm is finite.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln()
    }
}
