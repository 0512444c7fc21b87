// SPDX-License-Identifier: GPL-2.0
//! The JSON document: what was asked, where, every sample, and what follows from the samples.
//!
//! Tables, CSV and plots are made from it, at once or years later. A document holds one or several boots; joining
//! documents is joining their boots and summing up anew.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::sample::Sample;
use crate::summary::Summary;
use crate::variant::Variant;

/// Moves when a reader of the old form would misread the new one.
pub const SCHEMA: u32 = 1;

/// A pair to compare, on the workloads where it says something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// What a ratio is relative to.
    pub base: Variant,
    /// What is compared with it.
    pub changed: Variant,
    /// The workloads; every one that has samples of both, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<String>,
}

/// What an operation of a workload is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadInfo {
    /// The workload's name.
    pub name: String,
    /// One operation, in the singular.
    pub unit: String,
    /// Whether its throughput is told in bytes.
    pub bulk: bool,
}

/// A variant and what the module made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantInfo {
    /// As asked for.
    pub variant: Variant,
    /// The whole config, as the module told it; none for native.
    pub config: Option<String>,
}

/// The samples of one boot of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// What tells this boot from others.
    pub label: String,
    /// Where it was.
    pub environment: Environment,
    /// What shuffled and jittered it.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: u32,
    /// Rounds dropped before them.
    pub warmup: u32,
    /// Factor on the number of operations.
    pub scale: f64,
    /// Share of its CPUs that others kept busy just before, where that was looked at.
    pub busy: Option<f64>,
    /// False where the user ended it early.
    pub complete: bool,
    /// The variants' configs.
    pub variants: Vec<VariantInfo>,
    /// Every sample, in the order of taking.
    pub samples: Vec<Sample>,
}

/// A whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Program and version that wrote it.
    pub tool: String,
    /// The study of `reproduce` that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// The smallest effect worth a verdict, as a share of 1.
    pub noise_floor: f64,
    /// The workloads, in the order of output.
    pub workloads: Vec<WorkloadInfo>,
    /// What is compared with what.
    pub comparisons: Vec<Comparison>,
    /// The samples.
    pub boots: Vec<Boot>,
    /// What follows from them.
    pub summary: Summary,
}

impl Document {
    /// Reads the documents of a file, which may hold several one after the other, and checks that this program
    /// understands them.
    pub fn load(path: &Path) -> Result<Vec<Self>> {
        let what = || format!("reading {}", path.display());
        let text = fs::read_to_string(path).with_context(what)?;
        let mut documents = Vec::new();
        for value in serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>() {
            let value = value.with_context(what)?;
            match value["schema"].as_u64() {
                Some(schema) if schema == u64::from(SCHEMA) => {}
                Some(schema) => bail!(
                    "{} has schema {schema}, and this altpipe reads {SCHEMA}: use the one that wrote it ({})",
                    path.display(),
                    value["tool"]
                ),
                None => bail!(
                    "{} is no JSON of altpipe bench or altpipe reproduce",
                    path.display()
                ),
            }
            documents.push(serde_json::from_value(value).with_context(what)?);
        }
        if documents.is_empty() {
            bail!("{} is empty", path.display());
        }
        Ok(documents)
    }

    /// Adds another document's boots, if they answer the same question on the same kind of machine; gives it back
    /// if they do not. The summary is the caller's to renew.
    pub fn absorb(&mut self, other: Self) -> Result<Option<Self>> {
        if !self.is_alike(&other) {
            return Ok(Some(other));
        }
        for boot in other.boots {
            if let Some(same) = self.boots.iter().find(|own| own.same_samples(&boot)) {
                bail!(
                    "the boot {} with seed {} is given twice",
                    same.label,
                    same.seed
                );
            }
            self.boots.push(boot);
        }
        Ok(None)
    }

    /// Makes the summary from the samples.
    pub fn sum_up(&mut self) {
        self.summary = Summary::of(self);
    }

    fn is_alike(&self, other: &Self) -> bool {
        self.study == other.study
            && self.comparisons == other.comparisons
            && self.workloads == other.workloads
            && self.machine() == other.machine()
    }

    /// The kind of machine it was measured on.
    fn machine(&self) -> Option<(&str, &str, usize)> {
        self.boots.first().map(|boot| boot.environment.kind())
    }
}

impl Boot {
    fn same_samples(&self, other: &Self) -> bool {
        self.label == other.label && self.seed == other.seed && self.samples == other.samples
    }
}

/// Reads files and takes together what belongs together, in the order of the files.
pub fn join(files: &[impl AsRef<Path>]) -> Result<Vec<Document>> {
    let mut joined: Vec<Document> = Vec::new();
    for file in files {
        'document: for mut document in Document::load(file.as_ref())? {
            for known in &mut joined {
                match known.absorb(document)? {
                    None => continue 'document,
                    Some(unlike) => document = unlike,
                }
            }
            joined.push(document);
        }
    }
    joined.iter_mut().for_each(Document::sum_up);
    Ok(joined)
}
