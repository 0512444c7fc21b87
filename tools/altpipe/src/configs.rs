// SPDX-License-Identifier: GPL-2.0
//! What the create call is told for each variant.

use altpipe_core::Config;
use altpipe_uapi::get_config;
use anyhow::{Context, Result, anyhow};

use crate::device::Device;
use crate::document::VariantInfo;
use crate::schedule::Contestant;
use crate::source::Source;
use crate::variant::Variant;

/// The variants of a measurement, each with the text for its create call; none for native.
#[derive(Debug)]
pub struct Configs(Vec<(Variant, Option<String>)>);

impl Configs {
    /// Checks the configs of all contestants. `pinned` has each begin with a preset, so that pipes do not depend on the
    /// defaults in sysfs.
    pub fn of(line_ups: &[Vec<Contestant>], pinned: bool) -> Result<Self> {
        let mut configs: Vec<(Variant, Option<String>)> = Vec::new();
        for Contestant { variant, .. } in line_ups.iter().flatten() {
            if configs.iter().any(|(known, _)| known == variant) {
                continue;
            }
            let text = variant
                .config()
                .map(|config| text(config, pinned))
                .transpose()?;
            configs.push((variant.clone(), text));
        }
        Ok(Self(configs))
    }

    /// Makes a pipe of each, so that one that the module refuses fails now and not in the third round, and asks what
    /// it is.
    pub fn describe(&self, device: Option<&Device>) -> Result<Vec<VariantInfo>> {
        let info = |(variant, text): &(Variant, Option<String>)| {
            let config = match self.source(variant, device) {
                Source::Native | Source::Fifo => None,
                source => {
                    let (reader, _writer) = source.pipe().with_context(|| {
                        format!(
                            "the module makes no pipe of {:?}: compare its knobs with `altpipe status`",
                            text.as_deref().unwrap_or_default()
                        )
                    })?;
                    Some(get_config(&reader).context("asking a pipe for its config")?)
                }
            };
            Ok(VariantInfo {
                variant: variant.clone(),
                config,
            })
        };
        self.0.iter().map(info).collect()
    }

    /// Where pipes of a variant come from.
    pub fn source<'a>(&'a self, variant: &Variant, device: Option<&'a Device>) -> Source<'a> {
        let text = self
            .0
            .iter()
            .find(|(known, _)| known == variant)
            .and_then(|(_, text)| text.as_deref());
        match (text, device) {
            (Some(text), Some(device)) => Source::Altpipe(device, text),
            (None, _) if *variant == Variant::Fifo => Source::Fifo,
            (None, _) => Source::Native,
            (Some(_), None) => {
                unreachable!("the device is opened before an altpipe variant is measured")
            }
        }
    }
}

/// A config as the create call is to see it. A wrong one fails here, where the choices can be listed.
fn text(config: &str, pinned: bool) -> Result<String> {
    let parsed = Config::parse(config, &Config::DEFAULT)
        .map_err(|error| anyhow!("the variant {config:?}: {error}"))?;
    // A printed config begins with a preset, and so leaves no knob to the defaults.
    Ok(if pinned {
        parsed.to_string()
    } else {
        config.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::line_up;

    #[test]
    fn a_pinned_config_means_the_same_whatever_the_defaults() {
        let mut turned = Config::DEFAULT;
        for (name, value) in [("times", "full"), ("exclusive", "1"), ("capacity", "4096")] {
            altpipe_core::Knob::find(name)
                .unwrap()
                .store(&mut turned, value)
                .unwrap();
        }
        let wanted = Config::parse("exclusive=0", &Config::DEFAULT).unwrap();
        let pinned = text("exclusive=0", true).unwrap();
        assert_eq!(Config::parse(&pinned, &turned).unwrap(), wanted, "{pinned}");
        let default = text("", true).unwrap();
        assert_eq!(Config::parse(&default, &turned).unwrap(), Config::DEFAULT);
    }

    #[test]
    fn one_that_is_not_pinned_goes_out_as_it_is() {
        assert_eq!(text("exclusive=0", false).unwrap(), "exclusive=0");
        assert_eq!(text("", false).unwrap(), "");
    }

    #[test]
    fn a_wrong_word_is_named_with_the_choices() {
        let line_up = line_up(&[Variant::of("times=ctime")]);
        let error = Configs::of(&[line_up], false).unwrap_err().to_string();
        assert!(
            error.contains("ctime") && error.contains("mtime or full"),
            "{error}"
        );
    }
}
