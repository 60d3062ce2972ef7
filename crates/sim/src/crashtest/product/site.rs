//! Where the lives of an array are played: the stack of a seed, and what it is searched with.

use super::array::{ArrayOfStack, Observed, Places};
use super::door::Description;
use super::life::{Life, Opening};
use crate::crashtest::medium::{Medium, block_of};
use crate::crashtest::oracle::{Leniency, Oracle};
use crate::crashtest::recording_disk::World;
use crate::crashtest::stacks::{CheckStack, SearchedStack, StackOfSeed};
use crate::crashtest::trial::set_of;
use crate::crashtest::workload::{Action, Step};
use imbrex_core::extent::Extent;
use imbrex_core::label::{Label, LabelCopy};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{DiskId, Stack};
use std::rc::Rc;

/// Disks that lie ready for each place, the first one included.
pub const GENERATIONS: usize = 8;
/// One seed in so many has disks without labels.
const UNLABELLED_EVERY: u64 = 4;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrong {
    /// A bug in a layer.
    pub plant: Option<PlantedBug>,
    /// The door gives a new member the number of the one that it replaces.
    pub reuses_numbers: bool,
    /// Every device loses all its disks in the end of its first life, one soon after the other.
    pub loses_all: bool,
}

/// The stack of a seed, with an array in it, or several that share disks.
pub struct Site {
    /// The stack.
    pub stack: Rc<StackOfSeed>,
    /// The array that its lives are about.
    pub array: ArrayOfStack,
    /// The other arrays of the stack.
    pub other_arrays: Vec<ArrayOfStack>,
    /// Where the blocks of copies lie.
    pub places: Places,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// What is wrong with it.
    pub wrong: Wrong,
    /// Its disks have labels.
    pub is_labelled: bool,
    /// An opinion of its own on what the disks hold.
    check: Option<CheckStack>,
    /// By disk the members on it, by their places in the list of numbers.
    pub members_on: Vec<Vec<usize>>,
}

impl Site {
    /// The stack of a seed. `None`: it has no array.
    ///
    /// # Errors
    /// When it cannot be built, or not be searched.
    pub fn new(stack: &SearchedStack, seed: u64, wrong: Wrong) -> Result<Option<Site>, String> {
        let check = stack.check();
        let stack = stack.of_seed(seed).map_err(|error| error.to_string())?;
        let numbers: Vec<u16> = stack.numbers().iter().map(|it| it.number).collect();
        let built = stack.built_with(&numbers).map_err(|error| error.to_string())?;
        let mut arrays = ArrayOfStack::all_of(&stack, &built)?;
        if arrays.is_empty() {
            return Ok(None);
        }
        // Seeds in a row are about each port of one array, then about those of the next one.
        let round = seed / arrays[0].ports.len() as u64;
        let array = arrays.remove((round % arrays.len() as u64) as usize);
        let names = stack.numbers();
        let place_of = |(node, port): &(imbrex_core::stack::NodeId, imbrex_core::layer::Port)| {
            let node = stack.describe.nodes.iter().find(|it| it.id == *node)?;
            let own = names.iter().position(|member| member.node == node.name)?;
            Some(own + usize::from(port.0))
        };
        let disks = 0..stack.members().len();
        let members_on = disks.map(|disk| {
            let members = built.members_on(DiskId(disk as u16));
            members.iter().filter_map(place_of).collect()
        });
        let members_on = members_on.collect();
        // Members without a journal are known by their labels alone: there never were arrays of them without.
        let has_homes = array.kind != "raid1";
        // Drawn, so that it has nothing to do with which port the seed is about.
        let is_labelled = has_homes || Rng::new(seed, 200).below(UNLABELLED_EVERY) > 0;
        let places = Places::default();
        let mut site = Site {
            stack,
            array,
            other_arrays: arrays,
            places,
            seed,
            wrong,
            is_labelled,
            check,
            members_on,
        };
        site.places = site.find_places()?;
        Ok(Some(site))
    }

    /// The array that it is about, then the others.
    pub fn arrays(&self) -> impl Iterator<Item = &ArrayOfStack> {
        std::iter::once(&self.array).chain(&self.other_arrays)
    }

    /// How its arrays are, all together: a disk that they share has everything when each of them has.
    pub fn observe(&self, stack: &Stack) -> Observed {
        // Nobody is told that a member has come back before the labels say so.
        let moving = Observed { missing: u64::from(stack.is_moving_mark()), rebuilding: 0 };
        self.arrays().map(|array| array.observe(stack)).fold(moving, |all, one| Observed {
            missing: all.missing + one.missing,
            rebuilding: all.rebuilding + one.rebuilding,
        })
    }

    /// The name of the set of its disks.
    pub fn set(&self) -> Uuid {
        set_of(self.seed)
    }

    /// True when several arrays have members on this disk.
    pub fn is_shared(&self, disk: usize) -> bool {
        self.arrays().filter(|array| array.port_of(disk).is_some()).count() > 1
    }

    /// The name of a disk.
    pub fn disk_name(&self, disk: usize) -> &str {
        &self.stack.members()[disk].name
    }

    /// The disks that other arrays have and this one does not.
    pub fn disks_of_others(&self) -> Vec<usize> {
        let ports = self.other_arrays.iter().flat_map(|array| &array.ports);
        let disks = ports.map(|port| port.disk);
        disks.filter(|disk| self.array.port_of(*disk).is_none()).collect()
    }

    /// Checks what the disks hold, without those that are missing.
    ///
    /// # Errors
    /// When the check finds damage.
    pub fn check(
        &self,
        description: &Description,
        media: &[Medium],
        missing: &[usize],
    ) -> Result<(), String> {
        let Some(check) = self.check else { return Ok(()) };
        let disks = self.stack.members().iter().enumerate();
        let there = disks.filter(|(disk, _)| !missing.contains(disk));
        let members = there
            .map(|(disk, it)| (Rc::clone(&it.name), media[description.media[disk]].clone()))
            .collect::<Vec<_>>();
        let mut numbers = self.stack.numbers();
        for (listed, number) in numbers.iter_mut().zip(&description.numbers) {
            listed.number = *number;
        }
        check(&self.stack, numbers, &members)
    }

    /// How many disks there are.
    pub fn disks(&self) -> usize {
        self.stack.members().len()
    }

    /// Where a disk of a place lies: a medium of the world. It is the number of its label too, but for one.
    pub fn medium_of(&self, disk: usize, generation: usize) -> usize {
        disk + self.disks() * generation
    }

    /// The random number of the label of a new disk.
    pub fn random_of_new(&self, medium: usize) -> u32 {
        Rng::new(self.seed, 500 + medium as u64).next_u64() as u32
    }

    /// Disks on which nothing was ever written, those that lie ready among them, which have their label.
    pub fn blank(&self, set: Uuid) -> Vec<Medium> {
        let mut media = Vec::new();
        for generation in 0..GENERATIONS {
            for (disk, member) in self.stack.members().iter().enumerate() {
                let medium = Medium::new(&member.geometry).trusted_if(member.is_trusted);
                let mut medium = medium.in_parts(&member.parts);
                if self.is_labelled {
                    medium = medium.with_label();
                    if generation > 0 {
                        let number = self.medium_of(disk, generation);
                        self.label(&mut medium, set, number, member.geometry.blocks.0);
                    }
                }
                media.push(medium);
            }
        }
        media
    }

    fn label(&self, medium: &mut Medium, set: Uuid, number: usize, blocks: u64) {
        let label = Label::new(set, 1 + number as u16, self.random_of_new(number));
        for copy in LabelCopy::ALL {
            let block = label.seal(copy, blocks).expect("a label without entries");
            medium.damage(copy.address(blocks), block_of(&block));
        }
    }

    /// Writes a block through the array and looks where it has come to lie.
    fn find_places(&self) -> Result<Places, String> {
        let world = World::new(self.blank(self.set()), None);
        let description = Description::first(self);
        // A bug may be planted from the first start on: this is played without.
        let opening = Opening {
            start: Start::Format(self.set()),
            missing: &[],
            random: 1,
            wrong: Wrong::default(),
        };
        let mut life = Life::start(self, &world, &description, opening)
            .map_err(|it| format!("an empty device cannot be made: {}", it.words()))?;
        let mut oracle = Oracle::empty(self.stack.shape().blocks);
        let write = Step {
            connection: 0,
            action: Action::Write { durable: true },
            extent: Extent::new(0, 1),
            version: 1,
            delay_ns: 0,
        };
        life.play_alone(&[write], &mut oracle, Leniency::default())
            .map_err(|violation| violation.detail)?;
        let media = &world.borrow().media;
        let have_slices = self.stack.members().iter().any(|member| !member.parts.is_empty());
        Ok(Places::find(&self.array, media, have_slices))
    }
}
