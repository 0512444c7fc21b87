// SPDX-License-Identifier: GPL-2.0

//! KUnit suites of the pure core, as the kernel's compiler, memory model and formatting have it.
//!
//! The core's rules are tested on the host (`tools/altpipe-core`), in far more cases. What can be
//! another here than there is the build: which of the kernel's primitives stand behind
//! [`sync`](crate::sync) and [`page`](crate::page), overflow checks, and `core::fmt` behind
//! `vsnprintf`. The suites stand in a file of their own because the core's files name nothing of
//! the kernel. They run when the module is loaded on a kernel with CONFIG_KUNIT=y, and are not
//! compiled for another.

use kernel::prelude::*;

#[kunit_tests(altpipe_ring)]
mod ring_tests {
    use super::*;
    use crate::ring::{Kind, Published, Ring, Slot, Span};

    type Numbers = Ring<u32, KVec<Slot<u32>>>;

    fn slots(count: usize) -> Result<KVec<Slot<u32>>> {
        let mut slots = KVec::with_capacity(count, GFP_KERNEL)?;

        for _ in 0..count {
            slots.push(Slot::vacant(), GFP_KERNEL)?;
        }
        Ok(slots)
    }

    fn ring(count: usize) -> Result<Numbers> {
        Ring::new(slots(count)?).ok_or(EINVAL)
    }

    fn take(ring: &mut Numbers) -> Option<u32> {
        let page = ring.vacate_oldest();

        ring.advance_tail();
        page
    }

    #[test]
    fn only_a_power_of_two_of_slots_is_a_ring() -> Result {
        for (count, good) in [(0, false), (1, true), (2, true), (3, false), (16, true)] {
            assert_eq!(Ring::<u32, _>::new(slots(count)?).is_some(), good);
        }
        Ok(())
    }

    #[test]
    fn the_indices_wrap_and_the_order_stays() -> Result {
        let mut ring = ring(4)?;
        let mut wrapped = false;

        // The indices begin 64 slots before the edge, and the span lies across it for a while.
        for number in 0..200u32 {
            assert!(ring.push(number, 1, Kind::Open).is_ok());
            let Span { head, tail } = ring.span();
            wrapped |= head < tail;
            assert_eq!(ring.span().used(), number.min(2) + 1);
            if number >= 2 {
                assert_eq!(take(&mut ring), number.checked_sub(2));
            }
        }
        assert!(wrapped);
        Ok(())
    }

    #[test]
    fn a_full_ring_gives_the_page_back() -> Result {
        let mut ring = ring(2)?;

        assert!(ring.is_empty());
        assert!(ring.push(1, 1, Kind::Open).is_ok());
        assert!(ring.push(2, 1, Kind::Open).is_ok());
        assert!(ring.is_full());
        assert!(matches!(ring.push(3, 1, Kind::Open), Err(3)));
        assert_eq!(take(&mut ring), Some(1));
        assert!(ring.push(3, 1, Kind::Open).is_ok());
        assert_eq!(take(&mut ring), Some(2));
        assert_eq!(take(&mut ring), Some(3));
        assert_eq!(take(&mut ring), None);
        Ok(())
    }

    #[test]
    fn a_resize_across_the_edge_keeps_everything() -> Result {
        let mut ring = ring(4)?;

        for number in 0..62 {
            assert!(ring.push(number, 1, Kind::Open).is_ok());
            assert_eq!(take(&mut ring), Some(number));
        }
        for number in 0..4 {
            assert!(ring.push(number, 1, Kind::Open).is_ok());
        }
        assert!(ring.span().head < ring.span().tail);
        assert!(ring.resize(slots(2)?).is_err());
        assert!(ring.resize(slots(3)?).is_err());
        assert!(ring.resize(slots(8)?).is_ok());
        assert_eq!(ring.limit(), 8);
        assert_eq!(ring.bytes(), 4);
        for number in 0..4 {
            assert_eq!(take(&mut ring), Some(number));
        }
        Ok(())
    }

    #[test]
    fn what_is_published_is_seen_as_a_pair() {
        let word = Published::new(u32::MAX, 0);

        assert_eq!(word.load(), (u32::MAX, 0));
        word.store(0, u32::MAX);
        assert_eq!(word.load(), (0, u32::MAX));
        word.store_span(Span::START);
        assert_eq!(word.load_span(), Span::START);
    }
}

#[kunit_tests(altpipe_config)]
mod config_tests {
    use super::*;
    use crate::config::{Config, Reason, KNOBS, PRESETS};
    use kernel::str::CString;

    fn text_of(config: &Config) -> Result<CString> {
        CString::try_from_fmt(format_args!("{config}"))
    }

    fn reads_back(config: &Config) -> Result<bool> {
        let text = text_of(config)?;
        let text = text.to_str().map_err(|_| EINVAL)?;

        // Over any base: the text says everything.
        for preset in PRESETS {
            if Config::parse(text, &preset.config) != Ok(*config) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[test]
    fn a_preset_is_printed_as_a_name_and_read_back() -> Result {
        for preset in PRESETS {
            assert!(reads_back(&preset.config)?);
        }
        // A default that is printed as anything but the newest release's name would be a surprise.
        assert_eq!(text_of(&Config::DEFAULT)?.to_bytes(), b"v7.3");
        Ok(())
    }

    #[test]
    fn each_knob_away_from_the_default_is_read_back() -> Result {
        for (text, printed) in [
            ("exclusive=0", "v7.3,exclusive=0"),
            ("capacity=8192", "v7.3,capacity=8192"),
            ("v5.5,merge=0", "v5.5,merge=0"),
        ] {
            let config = Config::parse(text, &Config::DEFAULT).map_err(|_| EINVAL)?;

            assert_eq!(text_of(&config)?.to_bytes(), printed.as_bytes());
            assert!(reads_back(&config)?);
        }
        Ok(())
    }

    #[test]
    fn what_a_knob_shows_fits_a_page() -> Result {
        for knob in KNOBS {
            let mut text = KVec::new();
            let shown = knob.show(&Config::DEFAULT, &mut Bytes(&mut text));

            assert!(shown.is_ok());
            assert!(!text.is_empty());
            assert!(text.len() < kernel::page::PAGE_SIZE);
        }
        Ok(())
    }

    /// Collects text in the kernel's memory.
    struct Bytes<'a>(&'a mut KVec<u8>);

    impl core::fmt::Write for Bytes<'_> {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            self.0
                .extend_from_slice(text.as_bytes(), GFP_KERNEL)
                .map_err(|_| core::fmt::Error)
        }
    }

    #[test]
    fn a_text_that_is_no_config_is_refused_for_its_reason() {
        let reason = |text| {
            Config::parse(text, &Config::DEFAULT)
                .err()
                .map(|e| e.reason)
        };

        assert_eq!(reason(""), None);
        assert_eq!(reason("merge=1,"), Some(Reason::EmptyItem));
        assert_eq!(reason("v9.9"), Some(Reason::NoValue));
        assert_eq!(reason("merge=1,v5.5"), Some(Reason::LatePreset));
        assert_eq!(reason("murge=1"), Some(Reason::UnknownKnob));
        assert_eq!(reason("merge=2"), Some(Reason::BadValue("merge")));
        assert_eq!(reason("merge=1,merge=0"), Some(Reason::Repeated));
        assert_eq!(
            reason("capacity=99999999999999999999"),
            Some(Reason::BadValue("capacity"))
        );
    }
}
