//! Where a source file can be changed.
//!
//! Operators, conditions, statements and results are changed. What stands in a macro's brackets is not looked at, so
//! that faults which are switched by name (`protocol_step!` and the like) and assertions stay as they are. Constants
//! are left alone too: the compiler computes them before anybody can choose a fault.

use std::ops::Range;

use anyhow::Context;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, ReturnType, Signature, Stmt, UnOp};

use super::conditions::is_built;
use super::fault::{Kind, Site, Wrong};
use super::operators::{instead_of, is_assignment};
use super::values;
use crate::Result;

/// What a source file holds.
#[derive(Debug)]
pub(super) struct Found {
    /// The places that can be changed, in the order in which they begin; what holds another one comes first.
    pub(super) sites: Vec<Site>,
    /// The modules that it has in other files.
    pub(super) modules: Vec<String>,
}

/// Looks at a source file.
///
/// # Errors
///
/// If it is no Rust.
pub(super) fn find(source: &str) -> Result<Found> {
    let file = syn::parse_file(source).context("not understood")?;
    let mut finder =
        Finder { source, found: Found { sites: Vec::new(), modules: Vec::new() }, owner: None, function: None };
    if is_built(&file.attrs) {
        finder.visit_file(&file);
    }
    let mut found = finder.found;
    found.sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(found)
}

#[derive(Debug)]
struct Finder<'s> {
    source: &'s str,
    found: Found,
    /// The type whose functions are looked at.
    owner: Option<String>,
    /// The function that is looked at, and where it is.
    function: Option<(String, Range<usize>)>,
}

impl Finder<'_> {
    fn text(&self, part: &impl Spanned) -> &str {
        &self.source[part.span().byte_range()]
    }

    /// A part's text on one line, cut where it is long.
    fn shown(&self, part: &impl Spanned) -> String {
        let words = self.text(part).split_whitespace().collect::<Vec<_>>().join(" ");
        if words.chars().count() <= 60 { words } else { words.chars().take(57).chain("...".chars()).collect() }
    }

    fn add(&mut self, range: Range<usize>, kind: Kind, wrongs: impl IntoIterator<Item = (String, String)>) {
        let Some((name, function)) = &self.function else { return };
        let line = self.source[..range.start].matches('\n').count() + 1;
        let wrongs: Vec<_> =
            wrongs.into_iter().map(|(text, what)| Wrong { text, what: format!("{what} in {name}"), line }).collect();
        if !wrongs.is_empty() {
            let function = function.clone();
            self.found.sites.push(Site { range, kind, function, wrongs });
        }
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        if signature.constness.is_some() || signature.asyncness.is_some() {
            return;
        }
        let name = signature.ident.to_string();
        let name = self.owner.as_ref().map_or_else(|| name.clone(), |owner| format!("{owner}::{name}"));
        let outer = self.function.replace((name, body.span().byte_range()));
        let begin = body.brace_token.span.open().byte_range().end;
        match &signature.output {
            ReturnType::Default => {
                if body.stmts.len() > 1 {
                    self.add(begin..begin, Kind::Entry, [("return;".to_owned(), "return at once".to_owned())]);
                }
                self.unit_tail(body);
            }
            ReturnType::Type(_, result) => {
                let whole: String = body.stmts.iter().map(|stmt| self.text(stmt)).collect();
                let wrongs: Vec<_> = values::of(result)
                    .into_iter()
                    .filter(|value| *value != whole)
                    .map(|value| (format!("return {value};"), format!("return {value}")))
                    .collect();
                self.add(begin..begin, Kind::Entry, wrongs);
            }
        }
        self.visit_block(body);
        self.function = outer;
    }

    /// The last call of a block that has no value may be left out like any statement.
    fn unit_tail(&mut self, block: &Block) {
        if let Some(Stmt::Expr(call @ (Expr::Call(_) | Expr::MethodCall(_)), None)) = block.stmts.last() {
            let what = format!("leave out {}", self.shown(call));
            self.add(call.span().byte_range(), Kind::Statement, [(String::new(), what)]);
        }
    }

    /// A condition that is neither compared nor put together may be turned round.
    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) | Expr::Binary(_) | Expr::Lit(_) => {}
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {}
            Expr::Paren(inner) => self.condition(&inner.expr),
            _ => {
                let wrong = (format!("!({})", self.text(condition)), format!("negate {}", self.shown(condition)));
                self.add(condition.span().byte_range(), Kind::Value, [wrong]);
            }
        }
    }

    fn binary(&mut self, whole: &syn::ExprBinary) {
        if matches!(whole.op, BinOp::And(_) | BinOp::Or(_)) {
            self.condition(&whole.left);
            self.condition(&whole.right);
        }
        // A chain with `let` cannot be put into a block.
        if has_let(&whole.left) || has_let(&whole.right) {
            return;
        }
        let [all, op] = [whole.span().byte_range(), whole.op.span().byte_range()];
        let wrongs: Vec<_> = instead_of(&whole.op)
            .iter()
            .map(|other| {
                let (before, after) = (&self.source[all.start..op.start], &self.source[op.end..all.end]);
                let text = format!("{before}{other}{after}");
                (text, format!("replace {} with {other}", &self.source[op.clone()]))
            })
            .collect();
        self.add(all, Kind::Value, wrongs);
    }
}

/// Whether an operand of a chain binds names.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(chain) => has_let(&chain.left) || has_let(&chain.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_built(&item.attrs) {
            let owner = self.owner.take();
            self.function(&item.sig, &item.block);
            self.owner = owner;
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_built(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default
            && is_built(&item.attrs)
        {
            self.function(&item.sig, body);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let for_people = item.trait_.as_ref().is_some_and(|(_, path, _)| values::last(path) == "Debug");
        if !is_built(&item.attrs) || for_people {
            return;
        }
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => values::last(&path.path),
            other => self.shown(other),
        };
        let outer = self.owner.replace(owner);
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if is_built(&item.attrs) {
            let outer = self.owner.replace(item.ident.to_string());
            visit::visit_item_trait(self, item);
            self.owner = outer;
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_built(&item.attrs) {
            return;
        }
        match &item.content {
            Some(_) => visit::visit_item_mod(self, item),
            None => self.found.modules.push(item.ident.to_string()),
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        let range = stmt.span().byte_range();
        if self.source[range.clone()].starts_with("#[cfg") {
            return;
        }
        let may_be_left_out = match stmt {
            Stmt::Expr(expr, Some(_)) => match expr {
                Expr::MethodCall(_) | Expr::Call(_) | Expr::Try(_) | Expr::Assign(_) => true,
                Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
                Expr::Binary(whole) => is_assignment(&whole.op),
                _ => false,
            },
            Stmt::Local(local) => matches!(local.pat, Pat::Wild(_)),
            _ => false,
        };
        if may_be_left_out && !self.source[range.clone()].starts_with('#') {
            let what = format!("leave out {}", self.shown(stmt).trim_end_matches(';'));
            self.add(range, Kind::Statement, [(String::new(), what)]);
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Const(_) => return,
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            Expr::Binary(whole) => self.binary(whole),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let wrong = (self.text(&*unary.expr).to_owned(), "delete !".to_owned());
                self.add(unary.span().byte_range(), Kind::Value, [wrong]);
            }
            Expr::If(choice) => {
                self.condition(&choice.cond);
                if choice.else_branch.is_none() {
                    self.unit_tail(&choice.then_branch);
                }
            }
            Expr::ForLoop(repeated) => self.unit_tail(&repeated.body),
            Expr::While(repeated) => self.unit_tail(&repeated.body),
            Expr::Loop(repeated) => self.unit_tail(&repeated.body),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_built(&arm.attrs) {
            return;
        }
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
}

#[cfg(test)]
mod tests;
