// Reads recordings with the published engine's own tools, and prints what they make of them.
//
// Usage: node read.mjs FILE…   writes a list, one entry per file, as JSON.

import { readFileSync } from "node:fs";
import {
  commitStops,
  findLastWriter,
  flattenCausalDAG,
  causalChain,
  keysReadFromExecutionTree,
  stateAt,
} from "footprintjs/trace";

function* executed(tree) {
  for (const todo = tree ? [tree] : []; todo.length; ) {
    const one = todo.pop();
    yield one;
    if (one.next) todo.push(one.next);
    if (one.children) todo.push(...[...one.children].reverse());
  }
}

// The tools follow `next` by calling themselves, so a long run is only gone through by hand.
const SHALLOW = 500;

function read(path) {
  const { snapshot, events, structure } = JSON.parse(readFileSync(path, "utf-8"));
  const { commitLog, executionTree } = snapshot;
  const source = { commitLog, initialState: snapshot.initialState };
  const made = {
    stages: [...executed(executionTree)].map((node) => node.runtimeStageId),
    events: events.length,
    name: structure.name,
    end: stateAt(source, commitLog.length - 1).state,
  };
  if (made.stages.length > SHALLOW) return made;
  made.states = commitLog.map((_, index) => stateAt(source, index).state);
  const reads = keysReadFromExecutionTree(executionTree);
  made.stops = commitStops(commitLog, executionTree).map((stop) => stop.runtimeStageId);
  made.writers = {};
  made.causes = {};
  for (const key of Object.keys(made.end)) {
    const writer = findLastWriter(commitLog, key);
    made.writers[key] = writer?.runtimeStageId ?? null;
    if (!writer) continue;
    const chain = causalChain(commitLog, writer.runtimeStageId, reads.lookup);
    made.causes[key] = chain ? flattenCausalDAG(chain).map((node) => node.runtimeStageId) : null;
  }
  return made;
}

process.stdout.write(JSON.stringify(process.argv.slice(2).map(read)));
