//! A snapshot: the state of a session at rest.
//!
//! In: a slot with a heap that code left, and an earlier snapshot of the same home. Out: a snapshot, which holds the
//! pages that differ from the slot's image; and that state again, in the same slot, byte for byte. Snapshots share equal
//! pages, so a copy of a session costs nothing. A checkpoint compares all pages with the earlier snapshot, and costs the
//! memory of those that differ.
//!
//! The engine's values are addresses, so a snapshot belongs to one slot. It may outlive it, as plain memory. All workers
//! of one zygote have the slot that was made before they were forked: a snapshot may go from one to another as bytes.
#![expect(unsafe_code, reason = "copies raw memory")]

use super::{
    arena::TAIL_BYTES,
    exchange::Figures,
    heap::Heap,
    range::PAGE_BYTES,
    slot::{CLEARED_BY_HAND_BYTES, Page, Slot},
};
use crate::data::portable::{Input, Output, Portable};
use std::{ptr, sync::Arc};

/// Pages that a snapshot shares with another as one.
const CHUNK_PAGES: usize = 64;
/// The least number of pages to clear that are worth a system call.
const MANY_PAGES: usize = 8;

/// The pages of a stretch of the range. A page that is none is as the image has it.
#[derive(Clone)]
struct Chunk {
    pages: [Option<Arc<Page>>; CHUNK_PAGES],
    /// The number of them.
    count: usize,
}

/// Pages of a slot that differ from its image, and the figures of the heap. A clone is the same snapshot.
#[derive(Clone)]
pub(crate) struct Snapshot(Arc<Content>);

struct Content {
    home: u64,
    chunks: Vec<Option<Arc<Chunk>>>,
    tail: [u8; TAIL_BYTES],
    figures: Figures,
}

/// The content that a range has.
#[derive(Default)]
pub(super) struct Live {
    /// How far up it was written.
    pub(super) high_bytes: usize,
    /// The snapshot that it is equal to, if that is known.
    pub(super) snapshot: Option<Snapshot>,
}

impl Snapshot {
    /// The snapshot of a slot which is as its image. `None` if the heap has no range.
    pub(super) fn pristine(home: u64, slot: &Slot, heap: &Heap) -> Option<Self> {
        let figures = heap.figures()?;
        Some(Self(Arc::new(Content { home, chunks: Vec::new(), tail: slot.tail(), figures })))
    }

    /// Takes a snapshot. Compares the range with an earlier one, `self`, and keeps the pages that are equal. Memory that
    /// only `self` has is used again; shared memory stays as it is.
    ///
    /// # Safety
    /// `heap` is the heap in that slot. No code of its runtime runs, and no other thread writes to the range.
    pub(super) unsafe fn next(self, slot: &Slot, heap: &Heap) -> Option<Self> {
        let figures = heap.figures()?;
        let pages = figures.high_bytes().div_ceil(PAGE_BYTES);
        let home = self.0.home;
        let mut chunks = match Arc::try_unwrap(self.0) {
            Ok(own) => own.chunks,
            Err(shared) => shared.chunks.clone(),
        };
        chunks.resize(pages.div_ceil(CHUNK_PAGES), None);
        for (number, chunk) in chunks.iter_mut().enumerate() {
            let first = number * CHUNK_PAGES;
            let end = pages.min(first + CHUNK_PAGES);
            // SAFETY: as the caller promises; the pages are below the high mark.
            unsafe { update_chunk(chunk, slot, &figures, first, end) };
        }
        Some(Self(Arc::new(Content { home, chunks, tail: slot.tail(), figures })))
    }

    /// The same pages, with the present figures of the heap, for a range that nobody wrote to.
    pub(super) fn with_figures(&self, heap: &Heap) -> Option<Self> {
        let content = &*self.0;
        let (chunks, figures) = (content.chunks.clone(), heap.figures()?);
        Some(Self(Arc::new(Content { home: content.home, chunks, tail: content.tail, figures })))
    }

    /// Puts this state into the range. The caller sets the figures of the heap.
    ///
    /// # Safety
    /// The snapshot is one of that slot. No code of its runtime runs, no other thread writes to the range, and no value
    /// in there is used again before the state to which it belongs is back.
    pub(super) unsafe fn put(&self, slot: &Slot, live: &Live) {
        let known = live.snapshot.as_ref();
        let own_pages = self.0.figures.high_bytes().div_ceil(PAGE_BYTES);
        let mut live_pages = live.high_bytes.div_ceil(PAGE_BYTES);
        let by_hand = own_pages + CLEARED_BY_HAND_BYTES / PAGE_BYTES;
        let mut clearing = Clearing { slot, figures: &self.0.figures, first: 0, end: 0 };
        // SAFETY: as the caller promises, and all pages are within the range.
        unsafe {
            if known.is_none() && live_pages > by_hand {
                slot.give_back(by_hand, live_pages);
                live_pages = by_hand;
            }
            for number in 0..own_pages.max(live_pages).div_ceil(CHUNK_PAGES) {
                if known.is_none_or(|known| !same(self.chunk(number), known.chunk(number))) {
                    self.put_chunk(number, known, &mut clearing, own_pages.max(live_pages));
                }
            }
            clearing.flush();
            slot.set_tail(self.0.tail, live.high_bytes.max(self.0.figures.high_bytes()));
        }
    }

    /// Writes the pages of a chunk that differ, up to the page `end`. `known`: the snapshot that the range is equal to.
    ///
    /// # Safety
    /// As for [`Snapshot::put`].
    unsafe fn put_chunk(
        &self,
        number: usize,
        known: Option<&Self>,
        clearing: &mut Clearing,
        end: usize,
    ) {
        let (slot, chunk) = (clearing.slot, self.chunk(number));
        for index in 0..CHUNK_PAGES.min(end - number * CHUNK_PAGES) {
            let page = page_of(chunk, index);
            if known.is_some_and(|known| same(page, page_of(known.chunk(number), index))) {
                continue;
            }
            let number = number * CHUNK_PAGES + index;
            let content = page.map_or_else(|| slot.pristine(number), |page| &**page);
            let place = slot.page(number);
            // SAFETY: two pages that do not overlap; the caller vouches for the range.
            unsafe {
                if known.is_none() && *place == *content {
                    continue;
                }
                if page.is_none() && number >= slot.image_pages() {
                    clearing.add(number);
                } else {
                    ptr::copy_nonoverlapping(ptr::from_ref(content), place, 1);
                }
            }
        }
    }

    /// Writes its pages, for a slot with the same image at the same addresses.
    pub(crate) fn write(&self, out: &mut Output) {
        let Content { chunks, tail, figures, .. } = &*self.0;
        figures.write(out);
        tail.write(out);
        (self.page_bytes() / PAGE_BYTES).write(out);
        for (number, chunk) in chunks.iter().enumerate() {
            let pages = chunk.iter().flat_map(|chunk| chunk.pages.iter().enumerate());
            for (index, page) in pages.filter_map(|(index, page)| Some((index, page.as_ref()?))) {
                (number * CHUNK_PAGES + index).write(out);
                out.put(&**page);
            }
        }
    }

    /// The snapshot that was written, for a home with that slot. `None` if it is none of the slot.
    pub(super) fn read(input: &mut Input, home: u64, slot: &Slot) -> Option<Self> {
        let figures = Figures::read(input)?;
        let tail = <[u8; TAIL_BYTES]>::read(input)?;
        if !figures.fit(slot.range().start().addr(), slot.range().bytes()) {
            return None;
        }
        let pages = figures.high_bytes().div_ceil(PAGE_BYTES);
        let mut chunks: Vec<Option<Arc<Chunk>>> = vec![None; pages.div_ceil(CHUNK_PAGES)];
        for _ in 0..usize::read(input)? {
            let number = usize::read(input)?;
            let page = copy_of(input.take(PAGE_BYTES)?.try_into().ok()?)?;
            if number >= pages {
                return None;
            }
            let chunk = chunks.get_mut(number / CHUNK_PAGES)?.get_or_insert_with(empty);
            let chunk = Arc::get_mut(chunk)?;
            let place = chunk.pages.get_mut(number % CHUNK_PAGES)?;
            chunk.count += usize::from(place.replace(page).is_none());
        }
        Some(Self(Arc::new(Content { home, chunks, tail, figures })))
    }

    pub(super) fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// The number of the home that it belongs to.
    pub(super) fn home(&self) -> u64 {
        self.0.home
    }

    /// Bytes that counted against the limit when it was taken: those that the engine held, and those that the code made
    /// others hold.
    #[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
    pub(crate) fn counted_bytes(&self) -> usize {
        self.0.figures.held_bytes()
    }

    /// Bytes of its pages, those that it shares with others included.
    pub(crate) fn page_bytes(&self) -> usize {
        let chunks = self.0.chunks.iter().flatten();
        chunks.map(|chunk| chunk.count).sum::<usize>() * PAGE_BYTES
    }

    /// Bytes that it holds beside those that it shares with an earlier one.
    pub(crate) fn bytes_beyond(&self, earlier: Option<&Self>) -> usize {
        let mut bytes = size_of_val(self.0.chunks.as_slice());
        for (number, chunk) in self.0.chunks.iter().enumerate() {
            let known = earlier.and_then(|earlier| earlier.chunk(number));
            if chunk.is_none() || same(chunk.as_ref(), known) {
                continue;
            }
            let is_own = |index: &usize| {
                let page = page_of(chunk.as_ref(), *index);
                page.is_some() && !same(page, page_of(known, *index))
            };
            bytes += size_of::<Chunk>() + (0..CHUNK_PAGES).filter(is_own).count() * PAGE_BYTES;
        }
        bytes
    }

    fn chunk(&self, number: usize) -> Option<&Arc<Chunk>> {
        self.0.chunks.get(number)?.as_ref()
    }
}

/// A chunk without pages.
fn empty() -> Arc<Chunk> {
    Arc::new(Chunk { pages: [const { None }; CHUNK_PAGES], count: 0 })
}

/// Whether both are the same, without a look at the content.
fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

fn page_of(chunk: Option<&Arc<Chunk>>, index: usize) -> Option<&Arc<Page>> {
    chunk?.pages.get(index)?.as_ref()
}

/// Brings the pages of a chunk up to date with the range; leaves the chunk alone if all of them are equal.
///
/// # Safety
/// As for [`Snapshot::next`].
unsafe fn update_chunk(
    chunk: &mut Option<Arc<Chunk>>,
    slot: &Slot,
    figures: &Figures,
    first: usize,
    end: usize,
) {
    for number in first..end {
        let known = page_of(chunk.as_ref(), number - first);
        let pristine = slot.pristine(number);
        // A page that the system has is zero, as is the image above its end. To read it would map it.
        let returned = number >= slot.image_pages() && figures.has_returned(number);
        // SAFETY: within the range; nobody writes to it meanwhile, as the caller promises.
        let live = if returned { pristine } else { unsafe { &*slot.page(number) } };
        if live == known.map_or(pristine, |page| &**page) {
            continue;
        }
        let is_known = known.is_some();
        if live != pristine {
            write_page(page_for_change(chunk, number - first), live);
        } else if is_known {
            *page_for_change(chunk, number - first) = None;
        }
    }
    // Pages above the high mark are zero.
    for index in end - first..CHUNK_PAGES {
        if page_of(chunk.as_ref(), index).is_some() {
            *page_for_change(chunk, index) = None;
        }
    }
    if let Some(present) = chunk
        && let Some(own) = Arc::get_mut(present)
    {
        own.count = own.pages.iter().flatten().count();
        if own.count == 0 {
            *chunk = None;
        }
    }
}

/// The place of a page in a chunk that nobody else has: the same one, or a copy of it.
fn page_for_change(chunk: &mut Option<Arc<Chunk>>, index: usize) -> &mut Option<Arc<Page>> {
    let chunk = chunk
        .get_or_insert_with(|| Arc::new(Chunk { pages: [const { None }; CHUNK_PAGES], count: 0 }));
    &mut Arc::make_mut(chunk).pages[index]
}

/// Puts a content into the page, or into another one if somebody else has it.
fn write_page(place: &mut Option<Arc<Page>>, content: &Page) {
    match place.as_mut().and_then(Arc::get_mut) {
        Some(own) => own.copy_from_slice(content),
        None => *place = copy_of(content),
    }
}

/// Copied straight to its place: a page is too large to travel over the stack.
fn copy_of(page: &Page) -> Option<Arc<Page>> {
    Arc::<[u8]>::from(page.as_slice()).try_into().ok()
}

/// Pages that are to be zero, collected so that many go back to the system at once.
struct Clearing<'a> {
    slot: &'a Slot,
    /// Those of the state which is put into the range.
    figures: &'a Figures,
    first: usize,
    end: usize,
}

impl Clearing<'_> {
    /// # Safety
    /// As for [`Snapshot::put`]; the page is above the image.
    unsafe fn add(&mut self, number: usize) {
        if number != self.end {
            // SAFETY: as the caller promises.
            unsafe { self.flush() };
            self.first = number;
        }
        self.end = number + 1;
    }

    /// # Safety
    /// As for [`Snapshot::put`].
    unsafe fn flush(&mut self) {
        let (first, end) = (self.first, self.end);
        self.first = self.end;
        if first == end {
            return;
        }
        let returned = (first..end).any(|page| self.figures.has_returned(page));
        // SAFETY: as the caller promises.
        unsafe {
            if returned || end - first >= MANY_PAGES {
                self.slot.give_back(first, end);
            } else {
                self.slot.page(first).write_bytes(0, end - first);
            }
        }
    }
}
