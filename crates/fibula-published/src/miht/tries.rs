//! Changes of the priority tries: routes that push others down, and routes that come up.

use core::mem::swap;

use fibula::net::{Key, NextHop, Prefix, Route};

use super::layout::{Data, Miht, NONE, Word};

/// What leads to a node of a trie.
#[derive(Debug, Clone, Copy)]
pub(super) enum Link {
    /// The root of the trie of a key.
    Root(usize),
    /// The root of the trie of the routes without a key.
    Keyless,
    /// A side of a node.
    Below(u32, usize),
}

impl<K: Key, W: Word, const M: usize> Miht<K, W, M> {
    /// Returns the node that a link leads to.
    pub(super) fn follow(&self, link: Link) -> u32 {
        match link {
            Link::Root(trie) => self.roots[trie],
            Link::Keyless => self.keyless,
            Link::Below(node, side) => self.data[node as usize].below[side],
        }
    }

    fn lead(&mut self, link: Link, node: u32) {
        match link {
            Link::Root(trie) => self.roots[trie] = node,
            Link::Keyless => self.keyless = node,
            Link::Below(above, side) => self.data[above as usize].below[side] = node,
        }
    }

    /// Returns the link to the node of a prefix in a trie, and the node's depth.
    pub(super) fn find_node(&self, root: Link, depth: u8, prefix: Prefix<K>) -> Option<(Link, u8)> {
        let (mut link, mut depth) = (root, depth);
        loop {
            let node = self.follow(link);
            if node == NONE {
                return None;
            }
            if self.data[node as usize].is(prefix) {
                return Some((link, depth));
            }
            // No route is deeper than it is long.
            if depth >= prefix.len() {
                return None;
            }
            link = Link::Below(node, usize::from(prefix.addr().bit(depth)));
            depth += 1;
        }
    }

    /// Puts a route into a trie or changes its next hop. There must be room for a node.
    pub(super) fn insert_below(&mut self, root: Link, depth: u8, route: Route<K>) {
        let (mut link, mut depth, mut new) = (root, depth, Data::new(route));
        loop {
            let node = self.follow(link);
            if node == NONE {
                let node = self.add(new);
                self.lead(link, node);
                return;
            }
            let here = &mut self.data[node as usize];
            if (here.addr, here.len) == (new.addr, new.len) {
                here.next_hop = new.next_hop;
                return;
            }
            if new.len == depth || (here.len > depth && new.len > here.len) {
                // It takes the place, and what was there moves down.
                new.below = here.below;
                swap(here, &mut new);
                new.below = [NONE; 2];
            }
            link = Link::Below(node, usize::from(new.addr.bit(depth)));
            depth += 1;
        }
    }

    /// Removes the node that a link leads to, at this depth: the longest route below it comes up, and so on from there.
    pub(super) fn remove_node(&mut self, link: Link, depth: u8) {
        let (mut link, mut depth) = (link, depth);
        loop {
            let node = self.follow(link);
            let Some((lower, lower_depth)) = self.longest_below(node, depth) else {
                self.lead(link, NONE);
                self.data[node as usize].below = [self.free, NONE];
                self.free = node;
                self.free_len += 1;
                return;
            };
            let below = self.data[node as usize].below;
            self.data[node as usize] = Data { below, ..self.data[self.follow(lower) as usize] };
            (link, depth) = (lower, lower_depth);
        }
    }

    /// Returns the link to the longest route below a node of this depth, and its depth.
    fn longest_below(&self, node: u32, depth: u8) -> Option<(Link, u8)> {
        let mut longest: Option<(Link, u8, u8)> = None;
        for side in 0..2 {
            let link = Link::Below(node, side);
            let lower = self.follow(link);
            if lower == NONE {
                continue;
            }
            let len = self.data[lower as usize].len;
            // One that is as long as the way to it may have longer ones below it.
            let deeper = if len > depth + 1 { None } else { self.longest_below(lower, depth + 1) };
            let (link, depth) = deeper.unwrap_or((link, depth + 1));
            let len = self.data[self.follow(link) as usize].len;
            if longest.is_none_or(|(_, _, most)| len > most) {
                longest = Some((link, depth, len));
            }
        }
        longest.map(|(link, depth, _)| (link, depth))
    }

    /// Returns the number of a new node, for which there is room.
    fn add(&mut self, data: Data<K>) -> u32 {
        if self.free == NONE {
            debug_assert!(self.data.len() < self.data.capacity());
            self.data.push(data);
            return (self.data.len() - 1) as u32;
        }
        let node = self.free;
        self.free = self.data[node as usize].below[0];
        self.free_len -= 1;
        self.data[node as usize] = data;
        node
    }

    /// Returns the number of a new trie without nodes, for which there is room.
    pub(super) fn add_root(&mut self) -> usize {
        if self.free_root == NONE {
            self.roots.push(NONE);
            return self.roots.len() - 1;
        }
        let trie = self.free_root as usize;
        self.free_root = self.roots[trie];
        self.free_roots -= 1;
        self.roots[trie] = NONE;
        trie
    }

    /// Frees a trie without nodes.
    pub(super) fn give_up_root(&mut self, trie: usize) {
        self.roots[trie] = self.free_root;
        self.free_root = trie as u32;
        self.free_roots += 1;
    }

    /// Returns the next hop that a trie has for a prefix.
    pub(super) fn get_below(&self, root: Link, depth: u8, prefix: Prefix<K>) -> Option<NextHop> {
        let (link, _) = self.find_node(root, depth, prefix)?;
        NextHop::new(self.data[self.follow(link) as usize].next_hop)
    }
}
