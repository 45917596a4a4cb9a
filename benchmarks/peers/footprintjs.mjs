// footprintjs: the engine whose published pages this project implements, under node.
//
// A chart per subject (load, decide, a verdict) as a fan-out over the rows. Without a recorder the
// engine still keeps its commit log and execution tree; with full recording the narrative, the
// structure and the snapshot are taken too, and its decider's filter rules record evidence.
//
//   node footprintjs.mjs FOLDER_OF_NODE_MODULES     the protocol is that of worker.py

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const out = process.stdout.write.bind(process.stdout);
const say = (told) => out(`${JSON.stringify(told)}\n`);
console.error = console.warn = console.info = console.log = () => {};

const SHOWN = 50;
const MEANINGS = {
  declined: "the age cannot be read",
  unprotected: "older than 7 days",
  protected: "within 7 days",
};

const home = join(process.argv[2], "footprintjs");
const started = performance.now();
let engine, recorders, version;
try {
  engine = await import(pathToFileURL(join(home, "dist/esm/index.js")));
  recorders = await import(pathToFileURL(join(home, "dist/esm/recorders.js")));
  version = JSON.parse(readFileSync(join(home, "package.json"), "utf8")).version;
} catch (error) {
  say({ missing: `footprintjs is not in ${process.argv[2]} (npm ci in tests/browser/viewer)` });
  process.exit(0);
}
const { flowChart, FlowChartExecutor, decide } = engine;

const rowsOf = (n) =>
  Array.from({ length: n }, (_, i) => ({
    subject: `cluster-${i}`,
    age_days: i % 40,
    age_known: i % 23 > 0,
  }));

const expected = (row) =>
  !row.age_known ? "declined" : row.age_days > 7 ? "unprotected" : "protected";

const RULES = [
  { when: { age_known: { eq: false } }, then: "declined", label: MEANINGS.declined },
  { when: { age_days: { gt: 7 } }, then: "unprotected", label: MEANINGS.unprotected },
];

const word = (verdict) => (scope) => {
  scope.verdict = verdict;
};

// Built once and given to every branch, as a chart has no memory of a run.
const SUBJECT = flowChart(
  "Load",
  (scope) => {
    const { item } = scope.$getArgs();
    scope.subject = item.subject;
    scope.age_days = item.age_days;
    scope.age_known = item.age_known;
  },
  "load",
)
  .addDeciderFunction(
    "Posture",
    (scope) => decide(scope, RULES, { branch: "protected", label: MEANINGS.protected }),
    "posture",
  )
  .addFunctionBranch("protected", "protected", word("protected"))
  .addFunctionBranch("unprotected", "unprotected", word("unprotected"))
  .addFunctionBranch("declined", "declined", word("declined"))
  .end()
  .build();

function chartOf(rows, collected) {
  return flowChart("Inventory", (scope) => void (scope.subjects = rows.length), "inventory")
    .addParallelForEach("Each", "each", {
      items: () => rows,
      branch: () => SUBJECT,
      maxBranches: rows.length,
      into: "results",
    })
    .addFunction(
      "Collect",
      (scope) => {
        const verdicts = scope.results.map(({ subject, verdict }) => ({ subject, verdict }));
        collected.push(...verdicts);
        scope.verdicts = verdicts;
      },
      "collect",
    )
    .build();
}

async function run(rows, full) {
  const verdicts = [];
  const chart = chartOf(rows, verdicts);
  const executor = new FlowChartExecutor(chart);
  if (full) executor.attachCombinedRecorder(recorders.narrative());
  // Its guard against endless recursion counts branches: as it is, 499 run and the rest are lost.
  await executor.run({ input: {}, maxDepth: 1_000_000, maxIterations: 1_000_000 });
  const snapshot = executor.getSnapshot();
  const kept = full ? [snapshot, executor.getNarrativeEntries?.(), chart.buildTimeStructure] : [];
  return [verdicts, kept];
}

const MODES = { "no recorder": false, "full recording": true };

function envelope(verdicts) {
  const counts = {};
  for (const row of verdicts) counts[row.verdict] = (counts[row.verdict] ?? 0) + 1;
  const shown = verdicts.slice(0, SHOWN);
  const table = ["| subject | verdict |", "| --- | --- |"];
  for (const row of shown) table.push(`| ${row.subject} | ${row.verdict} |`);
  const meanings = Object.fromEntries(Object.keys(counts).map((word) => [word, MEANINGS[word]]));
  return JSON.stringify({
    verdicts: shown,
    verdictTable: table.join("\n"),
    meanings,
    counters: { rowsTotal: verdicts.length, rowsShown: shown.length, ...counts },
    rules: { name: "health-signal", version: "v1" },
  });
}

say({ version: `footprintjs ${version}, node ${process.version}`, modes: Object.keys(MODES),
      imported: performance.now() - started });

for await (const line of createInterface({ input: process.stdin })) {
  const [, mode, n, least] = line.match(/^(.*) (\S+) (\S+)$/);
  const rows = rowsOf(Number(n));
  let [sum, times] = [0, 0];
  globalThis.gc?.();
  while (times === 0 || sum < Number(least)) {
    const start = performance.now();
    const [verdicts] = await run(rows, MODES[mode]);
    envelope(verdicts);
    sum += (performance.now() - start) / 1000;
    times += 1;
    const found = new Map(verdicts.map((row) => [row.subject, row.verdict]));
    const right = rows.every((row) => found.get(row.subject) === expected(row));
    if (verdicts.length !== rows.length || !right) {
      say({ wrong: `${verdicts.length} verdicts of ${rows.length}` });
      process.exit(0);
    }
  }
  say({ seconds: sum / times });
}
