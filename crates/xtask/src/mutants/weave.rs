//! All faults of a file in one text: which one is committed is chosen when the program runs.

use std::ops::Range;

use super::fault::{Kind, Site};

/// A source with faults in it.
#[derive(Debug, Default)]
pub(super) struct Woven {
    pub(super) text: String,
    /// Where which site stands, outer ones first.
    pub(super) places: Vec<Place>,
}

/// Where a site, or one of its faults, stands in the woven text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// The number of the site in its file.
    pub(super) site: usize,
    /// The number of the fault at this site, or `None` if this is the whole of it.
    pub(super) wrong: Option<usize>,
}

/// Weaves faults into a source. `number` tells the number by which a site's fault is chosen when the program runs, or
/// `None` if it stays out.
pub(super) fn weave(source: &str, sites: &[Site], number: impl Fn(usize, usize) -> Option<u32>) -> Woven {
    let mut weaver = Weaver { source, woven: Woven::default(), done: 0, open: Vec::new() };
    for (index, site) in sites.iter().enumerate() {
        weaver.close_until(site.range.start);
        weaver.copy_to(site.range.start);
        let begin = weaver.woven.text.len();
        let faults: Vec<_> =
            (0..site.wrongs.len()).filter_map(|wrong| number(index, wrong).map(|number| (wrong, number))).collect();
        if faults.is_empty() {
            continue;
        }
        if site.kind == Kind::Value {
            weaver.woven.text.push('(');
        }
        let place = weaver.woven.places.len();
        weaver.woven.places.push(Place { range: begin..begin, site: index, wrong: None });
        for (wrong, number) in faults {
            weaver.woven.text.push_str(&format!("if ::f2fs_mutation::on({number}) {{ "));
            let begin = weaver.woven.text.len();
            weaver.woven.text.push_str(&site.wrongs[wrong].text);
            let range = begin..weaver.woven.text.len();
            weaver.woven.places.push(Place { range, site: index, wrong: Some(wrong) });
            weaver.woven.text.push_str(if site.kind == Kind::Entry { " } " } else { " } else " });
        }
        let end = match site.kind {
            Kind::Entry => {
                weaver.woven.places[place].range.end = weaver.woven.text.len();
                continue;
            }
            Kind::Value => " })",
            Kind::Statement => " }",
        };
        weaver.woven.text.push_str("{ ");
        weaver.open.push(Open { end: site.range.end, text: end, place });
    }
    weaver.close_until(usize::MAX);
    weaver.copy_to(source.len());
    weaver.woven
}

#[derive(Debug)]
struct Weaver<'s> {
    source: &'s str,
    woven: Woven,
    /// So many bytes of the source are in the text.
    done: usize,
    /// Sites that have begun and not ended.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    end: usize,
    text: &'static str,
    place: usize,
}

impl Weaver<'_> {
    fn copy_to(&mut self, end: usize) {
        if end > self.done {
            self.woven.text.push_str(&self.source[self.done..end]);
            self.done = end;
        }
    }

    /// Ends all sites that end at this place or in front of it.
    fn close_until(&mut self, place: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= place) {
            self.copy_to(open.end);
            self.woven.text.push_str(open.text);
            self.woven.places[open.place].range.end = self.woven.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find::find;

    /// A source with all its faults, numbered from 1 on.
    fn woven(source: &str) -> String {
        let sites = find(source).unwrap().sites;
        let next = std::cell::Cell::new(0);
        weave(source, &sites, |_, _| Some(next.replace(next.get() + 1) + 1)).text.replace("::f2fs_mutation::", "")
    }

    #[test]
    fn faults_have_the_sources_own_operands() {
        assert_eq!(
            woven("fn f(a: u32) -> T { a + a * 2 }"),
            "fn f(a: u32) -> T { (if on(1) { a - a * 2 } else { a + (if on(2) { a / 2 } else { a * 2 }) }) }"
        );
    }

    #[test]
    fn statements_and_bodies() {
        assert_eq!(
            woven("fn f() { a(); b() }"),
            "fn f() {if on(1) { return; }  if on(2) {  } else { a(); } if on(3) {  } else { b() } }"
        );
    }

    #[test]
    fn places_hold_what_they_name() {
        let source = "fn f(a: u32) -> T { !a }";
        let woven = weave(source, &find(source).unwrap().sites, |_, _| Some(7));
        let texts: Vec<&str> = woven.places.iter().map(|place| &woven.text[place.range.clone()]).collect();
        assert_eq!(texts, ["(if ::f2fs_mutation::on(7) { a } else { !a })", "a"]);
    }

    #[test]
    fn what_stays_out_leaves_no_trace() {
        let source = "fn f() { if a && !b { c(); } }";
        let sites = find(source).unwrap().sites;
        assert!(sites.len() >= 4);
        assert_eq!(weave(source, &sites, |_, _| None).text, source);
    }
}
