// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the environment tells the library, copied once into storage of its own: programs overwrite their
//! environment, and some write into the very memory it came in.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::counts;

/// The environment variable with the config of the pipes, in the one grammar; absent or empty for the defaults.
pub const CONFIG: &CStr = c"ALTPIPE_CONFIG";
/// The environment variable with the control device's path, where it is not `/dev/altpipe`.
pub const DEVICE: &CStr = c"ALTPIPE_DEVICE";
/// The environment variable with the path of the file of counters.
pub const COUNTS: &CStr = c"ALTPIPE_COUNTS";

/// The longest config that is taken. The module takes none that is longer.
pub const LONGEST_CONFIG: usize = 4096;
/// The longest path of a device that is taken.
pub const LONGEST_PATH: usize = 256;

/// A text of at most `N` - 1 bytes and its terminator.
#[derive(Debug)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    const EMPTY: Self = Self {
        bytes: [0; N],
        length: 0,
    };

    /// Takes a copy, or says that there is no room.
    fn copy(&mut self, text: &CStr) -> bool {
        let text = text.to_bytes();
        let (Some(room), true) = (self.bytes.get_mut(..text.len()), text.len() < N) else {
            return false;
        };
        room.copy_from_slice(text);
        self.length = text.len();
        true
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    /// Its length without the terminator.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// What the library was told.
#[derive(Debug)]
pub struct Settings {
    /// The control device, terminated.
    pub device: Text<LONGEST_PATH>,
    /// The config of each pipe.
    pub config: Text<{ LONGEST_CONFIG + 1 }>,
    /// Whether all of it could be understood. Where not, no pipe of altpipe's is made, for it might be another than
    /// the one that is meant.
    pub sound: bool,
}

impl Settings {
    const NONE: Self = Self {
        device: Text::EMPTY,
        config: Text::EMPTY,
        sound: false,
    };

    /// Reads an environment as a program is given it.
    ///
    /// # Safety
    ///
    /// `environment` is null, or a list of terminated texts that ends with null.
    unsafe fn read(&mut self, environment: *const *const c_char) {
        // SAFETY: by the caller.
        let find = |name| unsafe { find(environment, name) };
        let device = find(DEVICE).filter(|path| !path.is_empty());
        self.sound = self.device.copy(device.unwrap_or(c"/dev/altpipe"))
            && self.config.copy(find(CONFIG).unwrap_or(c""));
    }
}

/// The settings, and how far they are.
struct Shelf {
    state: AtomicU8,
    settings: UnsafeCell<Settings>,
}

const UNREAD: u8 = 0;
const BEING_READ: u8 = 1;
const READ: u8 = 2;

// SAFETY: `settings` is written by the one who takes `state` from UNREAD to BEING_READ, and read by others only
// after it has become READ.
unsafe impl Sync for Shelf {}

static SHELF: Shelf = Shelf {
    state: AtomicU8::new(UNREAD),
    settings: UnsafeCell::new(Settings::NONE),
};

/// Reads the settings and maps the counters, unless that has been done.
///
/// # Safety
///
/// `environment` is null, or a list of terminated texts that ends with null.
pub unsafe fn load(environment: *const *const c_char) {
    if SHELF
        .state
        .compare_exchange(UNREAD, BEING_READ, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    // SAFETY: the list by the caller; the cell because nobody else has made that step or sees READ yet.
    unsafe {
        (*SHELF.settings.get()).read(environment);
        if let Some(path) = find(environment, COUNTS) {
            counts::map(path);
        }
    }
    counts::add(|counts| &counts.programs);
    SHELF.state.store(READ, Ordering::Release);
}

/// The settings. Another library may make a pipe before our turn has come to be set up; then that pipe's maker sets
/// us up. Should a signal or a thread come between, there is nothing to wait with, and it goes without.
pub fn get() -> Option<&'static Settings> {
    if SHELF.state.load(Ordering::Acquire) == UNREAD {
        // SAFETY: the C library's own list.
        unsafe { load(environ) };
    }
    // SAFETY: nobody writes once it is READ.
    (SHELF.state.load(Ordering::Acquire) == READ).then(|| unsafe { &*SHELF.settings.get() })
}

unsafe extern "C" {
    /// The environment as the C library knows it.
    pub static environ: *const *const c_char;
}

/// The value of a variable.
///
/// # Safety
///
/// As for [`load`]; and the value lives as long as the environment is left alone.
unsafe fn find<'a>(environment: *const *const c_char, name: &CStr) -> Option<&'a CStr> {
    let mut place = environment;
    // SAFETY: the list ends with null, and is left before anything behind that is looked at.
    unsafe {
        while !place.is_null() && !(*place).is_null() {
            let value = CStr::from_ptr(*place)
                .to_bytes()
                .strip_prefix(name.to_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            if let Some(value) = value {
                // It ends where the entry ends.
                return Some(CStr::from_ptr(value.as_ptr().cast()));
            }
            place = place.add(1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[&CStr]) -> Settings {
        let mut list: Vec<_> = entries.iter().map(|entry| entry.as_ptr()).collect();
        list.push(core::ptr::null());
        let mut settings = Settings::NONE;
        // SAFETY: terminated texts, and null at the end.
        unsafe { settings.read(list.as_ptr()) };
        settings
    }

    fn text<const N: usize>(text: &Text<N>) -> &str {
        assert_eq!(text.bytes[text.len()], 0);
        core::str::from_utf8(&text.bytes[..text.len()]).unwrap()
    }

    #[test]
    fn nothing_said_means_the_device_and_its_defaults() {
        let settings = read(&[
            c"PATH=/bin",
            c"ALTPIPE_CONFIGS=times=full",
            c"ALTPIPE_DEVICE=",
        ]);
        assert!(settings.sound && settings.config.is_empty());
        assert_eq!(text(&settings.device), "/dev/altpipe");
    }

    #[test]
    fn the_first_entry_of_a_name_counts_as_it_does_for_getenv() {
        let settings = read(&[
            c"=ALTPIPE_CONFIG=x",
            c"ALTPIPE_CONFIG",
            c"ALTPIPE_CONFIG=v5.5,exclusive=0",
            c"ALTPIPE_CONFIG=v5.6",
            c"ALTPIPE_DEVICE=/dev/other",
        ]);
        assert!(settings.sound);
        assert_eq!(text(&settings.config), "v5.5,exclusive=0");
        assert_eq!(text(&settings.device), "/dev/other");
    }

    #[test]
    fn what_does_not_fit_is_not_cut_but_refused() {
        let with = |length| format!("ALTPIPE_CONFIG={}\0", "x".repeat(length));
        let longest = with(LONGEST_CONFIG);
        let settings = read(&[CStr::from_bytes_with_nul(longest.as_bytes()).unwrap()]);
        assert!(settings.sound);
        assert_eq!(settings.config.len(), LONGEST_CONFIG);
        let longer = with(LONGEST_CONFIG + 1);
        assert!(!read(&[CStr::from_bytes_with_nul(longer.as_bytes()).unwrap()]).sound);
    }

    #[test]
    fn no_environment_is_an_empty_one() {
        let mut settings = Settings::NONE;
        // SAFETY: null is allowed.
        unsafe { settings.read(core::ptr::null()) };
        assert!(settings.sound);
    }
}
