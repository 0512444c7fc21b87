// SPDX-License-Identifier: GPL-2.0

//! Visits every state that a world can come to.

use super::plan::Plan;
use super::world::World;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

/// The shortest way to a world in which nothing can happen any more, and a task sleeps though it
/// could go on.
pub(super) struct Way(Vec<Rc<World>>);

/// Visits every world that can follow `start`. Returns how many there are, or the way to one in
/// which a sleeper is forgotten.
pub(super) fn search(start: World, plan: &Plan) -> Result<usize, Way> {
    let start = Rc::new(start);
    let mut known = HashSet::from([start.clone()]);
    let mut visited = vec![(start, 0)];
    let mut next = 0;
    while let Some((world, _)) = visited.get(next) {
        let successors = world.successors(plan);
        if successors.is_empty() && world.forgets_a_sleeper(plan) {
            return Err(way_to(next, &visited));
        }
        for world in successors {
            let world = Rc::new(world);
            if known.insert(world.clone()) {
                visited.push((world, next));
            }
        }
        next += 1;
    }
    Ok(visited.len())
}

/// The worlds passed through on the way to one of the visited, each of which names the one before.
fn way_to(mut index: usize, visited: &[(Rc<World>, usize)]) -> Way {
    let mut way = Vec::new();
    loop {
        let (world, before) = &visited[index];
        way.push(world.clone());
        if index == 0 {
            way.reverse();
            return Way(way);
        }
        index = *before;
    }
}

/// One line for each step: whose it was, and the pipe after it.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in self.0.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let changed = |index: &usize| before.tasks[*index] != after.tasks[*index];
            for index in (0..after.tasks.len()).filter(changed) {
                let (old, new) = (&before.tasks[index], &after.tasks[index]);
                write!(f, "{index} {:?}: ", new.role)?;
                match (old.at == new.at, new.signal) {
                    (false, _) => write!(f, "{:?} to {:?}; ", old.at, new.at)?,
                    (true, true) => write!(f, "gets a signal; ")?,
                    (true, false) => write!(f, "is woken; ")?,
                }
            }
            let (generation, limit) = (after.generation, after.resized);
            writeln!(
                f,
                "slots {:?}, {} wait for room, change {generation}, resize {limit}, queues {:?}",
                after.slots, after.waiting, after.queues
            )?;
        }
        Ok(())
    }
}
