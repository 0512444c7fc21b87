// SPDX-License-Identifier: GPL-2.0
//! The statistics of a comparison: medians of paired ratios and their bootstrap intervals.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::statistics::{Data, OrderStatistics, Statistics};

/// Resamples behind each interval: enough that the interval's ends move by far less than they are apart.
const RESAMPLES: usize = 2000;

/// The middle value. NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    Data::new(values.to_vec()).median()
}

/// The arithmetic mean, and the standard deviation as a percentage of it (0 where it means nothing).
pub fn mean_and_spread(values: &[f64]) -> (f64, f64) {
    let mean = values.mean();
    let deviation = if values.len() > 1 {
        values.std_dev()
    } else {
        0.0
    };
    let percent = if mean == 0.0 {
        0.0
    } else {
        100.0 * deviation / mean.abs()
    };
    (mean, percent)
}

/// The 95% bootstrap interval of the median, by percentiles. The same seed gives the same interval.
///
/// None for fewer than two values, which say nothing of their spread.
pub fn median_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw.fill_with(|| values[rng.random_range(0..values.len())]);
            Data::new(&mut draw[..]).median()
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some((at(0.025), at(0.975)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_even_and_odd_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_spread_is_a_sample_deviation_in_percent() {
        let (mean, percent) = mean_and_spread(&[9.0, 10.0, 11.0]);
        assert_eq!((mean, percent), (10.0, 10.0));
        assert_eq!(mean_and_spread(&[0.0, 0.0]), (0.0, 0.0));
        assert_eq!(mean_and_spread(&[7.0]), (7.0, 0.0));
    }

    #[test]
    fn equal_values_have_a_point_for_an_interval() {
        assert_eq!(median_interval(&[1.5; 8], 1), Some((1.5, 1.5)));
    }

    #[test]
    fn the_interval_holds_the_median_and_stays_within_the_values() {
        let values = [0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04, 1.2];
        let (low, high) = median_interval(&values, 7).unwrap();
        assert!((0.98..=1.015).contains(&low) && (1.015..=1.2).contains(&high));
        // The outlier stays in the data but cannot carry the median's interval away.
        assert!(high < 1.1, "{high}");
    }

    #[test]
    fn five_values_are_resampled_as_the_binomial_says() {
        // All five draws fall on the lowest value with 5^-5; the median is the lowest where at least three do:
        // P = 0.058. So the lower end of a 95% interval is the lowest value, and likewise above.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(median_interval(&values, 3), Some((1.0, 5.0)));
    }

    #[test]
    fn the_seed_decides_the_interval() {
        let values: Vec<f64> = (0..30).map(|n| f64::from(n * n % 31)).collect();
        assert_eq!(median_interval(&values, 11), median_interval(&values, 11));
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(median_interval(&[1.0], 1), None);
    }
}
