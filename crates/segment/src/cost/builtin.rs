//! Models that need no measurement: the paper's three cards, and two solid-state drives.

use super::CostModel;
use f2fs_format::BLOCK_SIZE;

/// Blocks of the largest request that is tabulated: 2 MiB, a segment.
const LARGEST: u32 = 512;

/// The sizes at which a model is tabulated: all small ones, where cost bends, then each half-power of two.
const SIZES: [u32; 28] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512];

/// One of the paper's SD cards. Two points of each are published: 4 KiB random writes and 2 MiB sequential writes
/// ("Partial Garbage Collection Technique for Improving Write Performance of Log-Structured File Systems", table 1; a
/// megabyte is taken as 10^6 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Card {
    /// 0.882 and 8.968 MB/s.
    A,
    /// 0.989 and 10.961 MB/s.
    B,
    /// 1.140 and 16.829 MB/s.
    C,
}

impl Card {
    /// All three.
    pub const ALL: [Card; 3] = [Card::A, Card::B, Card::C];

    /// MB/s of random writes of one block, and of sequential writes of 512.
    #[must_use]
    pub const fn published(self) -> (f64, f64) {
        match self {
            Card::A => (0.882, 8.968),
            Card::B => (0.989, 10.961),
            Card::C => (1.140, 16.829),
        }
    }

    /// The letter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Card::A => "A",
            Card::B => "B",
            Card::C => "C",
        }
    }
}

/// The curve between a card's two published points, which do not determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interior {
    /// A fixed time for each request and one for each block: cost is a straight line.
    Affine,
    /// Seconds a block fall by a power of the size: a straight line on double logarithmic paper.
    LogLog,
    /// Affine in flash pages of so many blocks: a request that begins a page pays for all of it.
    Page {
        /// Blocks of a page.
        blocks: u32,
    },
    /// The full bandwidth is reached at so many blocks; up to there, a power of the size.
    Early {
        /// Blocks from which bandwidth no longer rises.
        blocks: u32,
    },
    /// Bandwidth stays that of one block up to so many blocks (a card that maps in large units); from there, a power.
    Late {
        /// Blocks up to which bandwidth does not rise.
        blocks: u32,
    },
}

impl Interior {
    /// The curves that the experiments run under.
    pub const ALL: [Interior; 5] = [
        Interior::Affine,
        Interior::LogLog,
        Interior::Page { blocks: 4 },
        Interior::Early { blocks: 32 },
        Interior::Late { blocks: 8 },
    ];

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Interior::Affine => "affine".to_owned(),
            Interior::LogLog => "log-log".to_owned(),
            Interior::Page { blocks } => format!("page-{blocks}"),
            Interior::Early { blocks } => format!("early-{blocks}"),
            Interior::Late { blocks } => format!("late-{blocks}"),
        }
    }

    /// Seconds a block at `size`, given those of one block and of 512.
    fn seconds(self, one: f64, many: f64, size: u32) -> f64 {
        let end = f64::from(LARGEST);
        let n = f64::from(size);
        // From (from, one) to (to, many) by a power; `from` is less than `to`.
        let power = |from: f64, to: f64| one * (many / one).powf((n.clamp(from, to) / from).ln() / (to / from).ln());
        let affine = |units: f64, all: f64| {
            let slope = (many * end - one) / (all - 1.0);
            (one + slope * (units - 1.0)) / n
        };
        match self {
            Interior::Affine => affine(n, end),
            Interior::LogLog => power(1.0, end),
            Interior::Page { blocks } => {
                let pages = |count: u32| f64::from(count.div_ceil(blocks.clamp(1, LARGEST / 2)));
                affine(pages(size), pages(LARGEST))
            }
            Interior::Early { blocks } => power(1.0, f64::from(blocks.clamp(2, LARGEST))),
            Interior::Late { blocks } => power(f64::from(blocks.clamp(1, LARGEST - 1)), end),
        }
    }
}

/// Seconds for a block at so many MB/s.
fn per_block(megabytes: f64) -> f64 {
    BLOCK_SIZE as f64 / (megabytes * 1e6)
}

impl CostModel {
    fn tabulate(name: String, seconds: impl Fn(u32) -> f64) -> CostModel {
        let points = SIZES.iter().map(|&size| (size, f64::from(size) * seconds(size))).collect();
        CostModel { name: name.into(), points }
    }

    /// One of the paper's cards with a curve between its points.
    #[must_use]
    pub fn card(card: Card, interior: Interior) -> CostModel {
        let (random, sequential) = card.published();
        let (one, many) = (per_block(random), per_block(sequential));
        CostModel::tabulate(format!("card {} ({})", card.name(), interior.name()), |size| {
            interior.seconds(one, many, size)
        })
    }

    /// One of the paper's cards with the shape of a device that was measured: `measured`'s seconds a block, stretched
    /// so that they go through the card's two points. A measurement that does not fall from 1 block to 512 gives the
    /// log-log curve.
    #[must_use]
    pub fn card_shaped(card: Card, measured: &CostModel) -> CostModel {
        let (random, sequential) = card.published();
        let (one, many) = (per_block(random), per_block(sequential));
        let (first, last) = (measured.seconds_per_block(1.0), measured.seconds_per_block(f64::from(LARGEST)));
        if first <= last {
            return CostModel::card(card, Interior::LogLog);
        }
        let name = format!("card {} (measured: {})", card.name(), measured.name());
        CostModel::tabulate(name, |size| {
            let share = ((measured.seconds_per_block(size.into()) - last) / (first - last)).clamp(0.0, 1.0);
            many + (one - many) * share
        })
    }

    /// A SATA drive: 60 us a request, 500 MB/s. Round figures of the class, not a measurement.
    #[must_use]
    pub fn sata_ssd() -> CostModel {
        CostModel::tabulate("SATA SSD".to_owned(), |size| 60e-6 / f64::from(size) + per_block(500.0))
    }

    /// An NVMe drive: 15 us a request, 2500 MB/s. Round figures of the class, not a measurement.
    #[must_use]
    pub fn nvme() -> CostModel {
        CostModel::tabulate("NVMe SSD".to_owned(), |size| 15e-6 / f64::from(size) + per_block(2500.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_goes_through_both_points() {
        for card in Card::ALL {
            let (random, sequential) = card.published();
            for interior in Interior::ALL {
                let model = CostModel::card(card, interior);
                let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
                assert!(close(model.seconds_per_block(1.0), per_block(random)), "{}", model.name());
                assert!(close(model.seconds_per_block(512.0), per_block(sequential)), "{}", model.name());
                let costs: Vec<f64> = (1..=1024).map(|n| model.seconds(n.into())).collect();
                assert!(costs.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-12)), "{} falls", model.name());
            }
        }
        assert!(CostModel::nvme().seconds(8.0) < CostModel::sata_ssd().seconds(8.0));
    }

    #[test]
    fn a_measured_shape_goes_through_both_points() {
        let measured = CostModel::from_points("disk", &[(1, 80e-6), (8, 20e-6), (64, 9e-6), (512, 8e-6)]).unwrap();
        for card in Card::ALL {
            let (random, sequential) = card.published();
            let model = CostModel::card_shaped(card, &measured);
            assert!((model.seconds_per_block(1.0) / per_block(random) - 1.0).abs() < 1e-9);
            assert!((model.seconds_per_block(512.0) / per_block(sequential) - 1.0).abs() < 1e-9);
            let share = (20.0 - 8.0) / (80.0 - 8.0);
            let at_8 = per_block(sequential) + (per_block(random) - per_block(sequential)) * share;
            assert!((model.seconds_per_block(8.0) / at_8 - 1.0).abs() < 1e-9);
        }
        let flat = CostModel::from_points("flat", &[(1, 1e-5)]).unwrap();
        assert_eq!(CostModel::card_shaped(Card::A, &flat), CostModel::card(Card::A, Interior::LogLog));
    }

    #[test]
    fn the_names_say_what_the_curve_does() {
        let t = |interior, n: f64| CostModel::card(Card::A, interior).seconds_per_block(n);
        assert_eq!(t(Interior::Late { blocks: 8 }, 8.0), t(Interior::Late { blocks: 8 }, 1.0));
        assert_eq!(t(Interior::Early { blocks: 32 }, 32.0), t(Interior::Early { blocks: 32 }, 512.0));
        let page = CostModel::card(Card::A, Interior::Page { blocks: 4 });
        assert!((page.seconds(5.0) / page.seconds(8.0) - 1.0).abs() < 1e-9);
        assert!((page.seconds(2.0) / page.seconds(3.0) - 1.0).abs() < 1e-9);
        assert!(t(Interior::Affine, 3.0) < t(Interior::LogLog, 3.0));
    }

    #[test]
    fn drives_take_a_time_for_each_request_and_for_each_byte() {
        for (model, request, rate) in [(CostModel::sata_ssd(), 60e-6, 500e6), (CostModel::nvme(), 15e-6, 2500e6)] {
            for blocks in [1.0, 16.0, 512.0] {
                let expected = request + blocks * 4096.0 / rate;
                assert!((model.seconds(blocks) / expected - 1.0).abs() < 1e-9, "{}, {blocks}", model.name());
            }
        }
    }

    /// Sizes beyond those that are tabulated are taken for the nearest that can be.
    #[test]
    fn curves_of_any_size_have_costs() {
        for blocks in [0, 1, 2, 256, 511, 512, 513, u32::MAX] {
            for interior in [Interior::Page { blocks }, Interior::Early { blocks }, Interior::Late { blocks }] {
                let model = CostModel::card(Card::C, interior);
                assert!(model.points().all(|(_, seconds)| seconds.is_finite() && seconds > 0.0), "{}", model.name());
                let (random, sequential) = Card::C.published();
                assert!((model.seconds_per_block(1.0) / per_block(random) - 1.0).abs() < 1e-9, "{}", model.name());
                assert!(
                    (model.seconds_per_block(512.0) / per_block(sequential) - 1.0).abs() < 1e-9,
                    "{}",
                    model.name()
                );
            }
        }
    }

    #[test]
    fn models_are_named_for_reports() {
        let names = Interior::ALL.map(Interior::name);
        assert_eq!(names, ["affine", "log-log", "page-4", "early-32", "late-8"]);
        assert_eq!(CostModel::card(Card::B, Interior::Affine).name(), "card B (affine)");
    }
}
