//! The sources of the product's crates, with all that can be done wrong in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::Context;

use super::fault::{Fault, Kind, Site};
use super::find;
use super::weave::{self, Woven};
use crate::Result;

/// Parts of the product that no test could judge.
const LEFT_ALONE: [&str; 2] = [
    // Says whether a fault is to be committed.
    "crates/sync/src/mutant.rs",
    // Measures.
    "crates/sync/src/counting.rs",
];

/// The sources of some crates.
#[derive(Debug)]
pub(super) struct Sources {
    files: Vec<Source>,
    /// All faults; the number of one is its place here, from 1 on.
    faults: Vec<Fault>,
}

#[derive(Debug)]
struct Source {
    name: String,
    text: String,
    sites: Vec<Site>,
    /// The number of the first fault.
    first: usize,
}

/// Sources with faults woven in.
#[derive(Debug)]
pub(super) struct Cloth(BTreeMap<String, (usize, Woven)>);

impl Sources {
    /// Reads the sources of crates, beginning with their `lib.rs`: what no module names is not built.
    ///
    /// # Errors
    ///
    /// If a source is missing or no Rust.
    pub(super) fn read(root: &Path, crates: &[&str]) -> Result<Sources> {
        let mut sources = Sources { files: Vec::new(), faults: Vec::new() };
        for name in crates {
            sources.add(root, &format!("crates/{name}/src/lib.rs"))?;
        }
        Ok(sources)
    }

    fn add(&mut self, root: &Path, name: &str) -> Result<()> {
        if LEFT_ALONE.contains(&name) {
            return Ok(());
        }
        let text = fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"))?;
        let found = find::find(&text).with_context(|| name.to_owned())?;
        let path = Path::new(name);
        let parent = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().unwrap_or_default();
        let below = if ["lib", "mod"].iter().any(|root| stem == *root) { parent.to_owned() } else { parent.join(stem) };
        let first = self.faults.len() + 1;
        self.faults.extend(Fault::of_file(name, &found.sites));
        self.files.push(Source { name: name.to_owned(), text, sites: found.sites, first });
        for module in found.modules {
            let places = [below.join(format!("{module}.rs")), below.join(&module).join("mod.rs")];
            if let Some(place) = places.iter().find(|place| root.join(place).is_file()) {
                self.add(root, &place.to_string_lossy())?;
            }
        }
        Ok(())
    }

    /// All faults. The number of one is its place here, from 1 on.
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Weaves all faults into the sources but those that are left out, by their numbers.
    pub(super) fn weave(&self, left_out: &BTreeSet<usize>) -> Cloth {
        let woven = self.files.iter().enumerate().map(|(index, source)| {
            let numbers = source.numbers();
            let number = |site: usize, wrong: usize| {
                let number = numbers[site] + wrong;
                (!left_out.contains(&number)).then_some(number as u32)
            };
            (source.name.clone(), (index, weave::weave(&source.text, &source.sites, number)))
        });
        Cloth(woven.collect())
    }

    /// The faults that a complaint of the compiler about a place is about: the one that stands there, or those whose
    /// right side it is; else those of the last site within the place. With `widely`, all of this kind in the function.
    pub(super) fn blamed(&self, cloth: &Cloth, file: &str, place: &Range<usize>, widely: Option<Kind>) -> Vec<usize> {
        let Some((index, woven)) = cloth.0.get(file) else { return Vec::new() };
        let source = &self.files[*index];
        let numbers = source.numbers();
        let of_site = |site: usize| (0..source.sites[site].wrongs.len()).map(move |wrong| (site, wrong));
        let around = woven.places.iter().filter(|site| site.range.contains(&place.start));
        let within = woven.places.iter().filter(|site| site.wrong.is_none() && place.contains(&site.range.start));
        let before = woven.places.iter().filter(|site| site.range.start <= place.start);
        let nearest = around
            .min_by_key(|site| site.range.len())
            .or_else(|| within.max_by_key(|site| site.range.start))
            .or_else(|| before.filter(|_| widely.is_some()).max_by_key(|site| site.range.start));
        let pairs: Vec<(usize, usize)> = match (nearest, widely) {
            (Some(found), Some(kind)) => {
                let sites = source.of_function_of(found.site);
                sites.filter(|site| source.sites[*site].kind == kind).flat_map(of_site).collect()
            }
            (Some(found), None) => match found.wrong {
                Some(wrong) => vec![(found.site, wrong)],
                None => of_site(found.site).collect(),
            },
            (None, _) => Vec::new(),
        };
        pairs.into_iter().map(|(site, wrong)| numbers[site] + wrong).collect()
    }
}

impl Source {
    /// The number of each site's first fault.
    fn numbers(&self) -> Vec<usize> {
        let mut next = self.first;
        self.sites
            .iter()
            .map(|site| {
                let first = next;
                next += site.wrongs.len();
                first
            })
            .collect()
    }

    /// The sites of the function that a site is in.
    fn of_function_of(&self, site: usize) -> impl Iterator<Item = usize> + '_ {
        let function = self.sites[site].function.clone();
        (0..self.sites.len()).filter(move |&other| self.sites[other].function == function)
    }
}

impl Cloth {
    /// The files and their texts.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, (_, woven))| (name.clone(), woven.text.clone())).collect()
    }
}
