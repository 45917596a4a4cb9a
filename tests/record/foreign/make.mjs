// Makes recordings with the published engine, so that reading them is tested on the real thing.
//
//   node make.mjs FOLDER [NAME ...]     writes FOLDER/NAME.json, every program unless some are named
//
// The engine is the one tests/browser/viewer/package-lock.json pins. The clock stands still, and
// each recording carries one run id, so the bytes are the same every time.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

Date.now = () => Date.UTC(2026, 0, 2);
performance.now = () => 0;
console.error = console.warn = console.info = console.log = () => {};

const engine = new URL("../../browser/viewer/node_modules/footprintjs/dist/esm/", import.meta.url);
const { flowChart, flowChartSelector, FlowChartExecutor, decide, select, interrupt } = await import(
  new URL("index.js", engine)
);
const { narrative } = await import(new URL("recorders.js", engine));

const RUN_ID = "1767312000000-0000000001";

// -- recording ---------------------------------------------------------------------------------

// What an observer keeps who wants the evidence: no shipped recorder puts it into a snapshot.
function evidence() {
  const data = [];
  const keep = (event) => {
    if (event.evidence) {
      data.push({ runtimeStageId: event.traversalContext.runtimeStageId, evidence: event.evidence });
    }
  };
  return {
    id: "decisions",
    onDecision: keep,
    onSelected: keep,
    toSnapshot: () => ({ name: "Decisions", description: "What was decided on", data }),
  };
}

// Runs a chart and gives the three things a recording is made of.
async function record(chart, { recorders = [narrative()], input, policy, dials, answer } = {}) {
  const structure = JSON.parse(JSON.stringify(chart.buildTimeStructure));
  const executor = new FlowChartExecutor(chart, dials ?? {});
  for (const recorder of recorders) executor.attachCombinedRecorder(recorder);
  if (policy) executor.setRedactionPolicy(policy);
  try {
    await executor.run(input === undefined ? {} : { input });
    if (answer !== undefined) await executor.resume(executor.getCheckpoint(), answer);
  } catch {
    // A run that fails is recorded all the same.
  }
  const snapshot = executor.getSnapshot(policy ? { redact: true } : undefined);
  snapshot.runId = RUN_ID;
  return { snapshot, events: [], structure };
}

// -- the worked example ------------------------------------------------------------------------

const ROWS = [
  { subject: "cluster-a", age_days: 2, age_known: true },
  { subject: "cluster-b", age_days: 30, age_known: true },
  { subject: "cluster-c", age_days: null, age_known: false },
];

const POSTURE = [
  {
    when: { age_known: { eq: false } },
    then: "declined",
    label: "age unreadable — no classification",
  },
  { when: { age_days: { gt: 7 } }, then: "unprotected", label: "older than the 7-day threshold" },
];

const word = (verdict) => (scope) => {
  scope.verdict = verdict;
};

function subject(extra = (builder) => builder) {
  return extra(
    flowChart(
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
        "Protection posture",
        (scope) =>
          decide(scope, POSTURE, { branch: "protected", label: "no rule fired — within 7 days" }),
        "posture",
      )
      .addFunctionBranch("protected", "protected", word("protected"))
      .addFunctionBranch("unprotected", "unprotected", word("unprotected"))
      .addFunctionBranch("declined", "declined", word("declined"))
      .end(),
  ).build();
}

function triageOf(rows, options = {}) {
  return flowChart(
    "Inventory",
    (scope) => {
      scope.subjects = rows;
    },
    "inventory",
  )
    .addParallelForEach("Assess each subject", "per-subject", {
      items: (scope) => scope.subjects,
      branch: options.branch ?? (() => subject()),
      maxBranches: options.maxBranches ?? 50,
      into: "subject_results",
    })
    .addFunction(
      "Collect",
      (scope) => {
        scope.verdicts = scope.subject_results.map((slot) => ({
          subject: slot?.subject ?? null,
          verdict: slot?.verdict ?? null,
          age: slot?.age_days ?? null,
        }));
        scope.coverage = { not_checked: ["clusters that report to nobody"] };
        scope.report = { stale_after_days: 7, subjects_total: scope.subject_results.length };
      },
      "collect",
    )
    .build();
}

// -- the programs ------------------------------------------------------------------------------

const linear = () =>
  flowChart(
    "Begin",
    (scope) => {
      scope.n = scope.$getArgs().start;
      scope.person = { name: "Ada", address: { city: "London", zip: "N1" } };
      scope.tags = ["a"];
      scope.gone = true;
    },
    "begin",
    { description: "Write down the input", tags: ["first"] },
  )
    .addFunction(
      "Work",
      (scope) => {
        scope.n = scope.n + 1;
        scope.person.address.zip = "E2";
        scope.tags.push("b");
        delete scope.gone;
        scope.same = scope.same;
        scope.$debug("note", { seen: 1 });
        scope.$metric("latency", 42);
        scope.$emit("work.done", { n: scope.n });
      },
      "work",
    )
    .addFunction("End", (scope) => `n is ${scope.n}`, "end")
    .build();

const routed = (route) => (builder) =>
  builder
    .addDeciderFunction("Route", route, "route", "picks a way")
    .addFunctionBranch("fast", "Fast", word("fast"), "The short way")
    .addFunctionBranch("slow", "Slow", word("slow"))
    .setDefault("slow")
    .end()
    .addFunction("After", (scope) => scope.verdict, "after");

const score = (n) =>
  flowChart(
    "Score",
    (scope) => {
      scope.score = n;
      scope.tier = "gold";
    },
    "score",
  );

const parts = (builder) =>
  builder
    .addListOfFunction([
      { id: "disk", name: "Disk", fn: (scope) => ((scope.free = 10), "roomy") },
      { id: "net", name: "Net", fn: (scope) => ((scope.rtt = scope.base * 2), scope.rtt) },
      {
        id: "dns",
        name: "Dns",
        fn: (scope) => {
          scope.tried = true;
          throw new Error("no answer");
        },
      },
    ])
    .addFunction("Join", (scope) => ((scope.joined = true), "joined"), "join");

const inner = (name, deeper) => {
  const built = flowChart(
    `${name} in`,
    (scope) => {
      scope.doubled = (scope.value ?? 0) * 2;
    },
    "in",
    { description: `${name} goes in` },
  );
  if (deeper) {
    built.addSubFlowChartNext("deep", deeper, "Deep", {
      inputMapper: (scope) => ({ value: scope.doubled, row: { a: 1, b: [] } }),
      outputMapper: (out) => ({ deep: out.doubled, list: [out.doubled] }),
    });
  }
  return built.addFunction(`${name} out`, (scope) => void (scope.done = name), "out").build();
};

const mounted = () =>
  flowChart("Start", (scope) => ((scope.value = 1), (scope.list = [0])), "start")
    .addSubFlowChartNext("sub", inner("Sub", inner("Deep")), "The sub", {
      inputMapper: (scope) => ({ value: scope.value }),
      outputMapper: (out) => ({ result: out.doubled, list: [out.doubled] }),
    })
    .addLazySubFlowChartNext("late", () => inner("Late"), "Late one")
    .addFunction("End", (scope) => scope.result, "end")
    .build();

const looping = () =>
  flowChart("Setup", (scope) => void (scope.n = 0), "setup")
    .addFunction("Body", (scope) => void (scope.n = scope.n + 1), "body")
    .addDeciderFunction("Enough", (scope) => (scope.n < 3 ? "again" : "done"), "enough")
    .addFunctionBranch("again", "Again", () => {}, undefined, { loopTo: "body" })
    .addFunctionBranch("done", "Done", (scope) => void (scope.done = true))
    .end()
    .build();

const spinning = () =>
  flowChart("Tick", (scope) => void (scope.n = (scope.n ?? 0) + 1), "tick")
    .addFunction(
      "Tock",
      (scope) => {
        if (scope.n >= 3) scope.$break("three is enough");
      },
      "tock",
    )
    .loopTo("tick")
    .build();

const asking = () =>
  flowChart("Before", (scope) => void (scope.amount = 900), "before")
    .addPausableFunction(
      "Approval",
      {
        execute: (scope) => ((scope.asked = true), { question: `approve ${scope.amount}?` }),
        resume: (scope, answer) => void (scope.approved = answer),
      },
      "approval",
      "A person has to say yes",
    )
    .addFunction("After", (scope) => (scope.approved ? "paid" : "refused"), "after")
    .build();

const failing = () => {
  let tries = 0;
  return flowChart("First", (scope) => void (scope.a = 1), "first")
    .addFunction(
      "Flaky",
      (scope) => {
        scope.tries = ++tries;
        if (tries < 3) throw new Error(`attempt ${tries} broke`);
      },
      "flaky",
    )
    .retry({ attempts: 3 })
    .addFunction(
      "Breaks",
      (scope) => {
        scope.half = "written";
        throw new TypeError("it broke");
      },
      "breaks",
    )
    .addFunction("Never", () => {}, "never")
    .build();
};

const secretive = () =>
  flowChart(
    "Login",
    (scope) => {
      scope.apiKey = "sk-1234567890";
      scope.patient = { name: "Ann", ssn: "123-45-6789", ward: 3 };
      scope.plain = "seen";
    },
    "login",
  )
    .addSubFlowChartNext("check", inner("Check"), "Check", {
      inputMapper: (scope) => ({ apiKey: scope.apiKey, value: 2 }),
    })
    .addFunction("Use", (scope) => void (scope.used = scope.apiKey.length), "use")
    .build();

const SECRETS = { keys: ["apiKey"], fields: { patient: ["ssn"] } };

const streaming = () =>
  flowChart("Prompt", (scope) => void (scope.prompt = "hi"), "prompt")
    .addStreamingFunction(
      "Answer",
      async (scope, _, stream) => {
        for (const token of ["hel", "lo"]) stream(token);
        scope.answer = "hello";
      },
      "answer",
      "tokens",
    )
    .build();

const choosing = (rules) => () =>
  flowChartSelector("Pick", (scope) => rules(scope), "pick")
    .addFunctionBranch("cpu", "Cpu", (scope) => void (scope.load = 0.5))
    .addFunctionBranch("mem", "Mem", (scope) => "full")
    .addFunctionBranch("net", "Net", () => {})
    .end()
    .addFunction("After", (scope) => void (scope.after = true), "after")
    .build();

const SICK = [
  { when: { cpu: { gt: 80 } }, then: "cpu", label: "busy" },
  { when: { mem: { gt: 80 } }, then: "mem", label: "full" },
  { when: (scope) => scope.net === "down", then: "net", label: "unreachable" },
];

const sick = (values) => (scope) => {
  Object.assign(scope, values);
  return select(scope, SICK);
};

const nested = () =>
  flowChart("Sites", (scope) => void (scope.sites = [{ hosts: [1, 2] }, { hosts: [3] }]), "sites")
    .addParallelForEach("Per site", "per-site", {
      items: (scope) => scope.sites,
      maxBranches: 5,
      into: "sums",
      branch: (site) =>
        flowChart("Hosts", (scope) => void (scope.hosts = site.hosts), "hosts")
          .addParallelForEach("Per host", "per-host", {
            items: (scope) => scope.hosts,
            maxBranches: 5,
            into: "found",
            branch: (host) => flowChart("Probe", () => host * 10, "probe").build(),
          })
          .addFunction("Sum", (scope) => scope.found.reduce((a, b) => a + b, 0), "sum")
          .build(),
    })
    .build();

const uneven = () =>
  triageOf([...ROWS, { subject: "cluster-d", age_days: 1, age_known: true }], {
    maxBranches: 3,
    branch: (row) =>
      row.subject === "cluster-b"
        ? flowChart(
            "Load",
            (scope) => {
              scope.subject = row.subject;
              throw new Error("cannot load");
            },
            "load",
          ).build()
        : subject(),
  });

const everyKind = () => {
  let built = flowChart("First", () => {}, "first", { description: "the first", tags: ["t1"] })
    .addStreamingFunction("Stream", () => {}, "stream", "out")
    .addPausableFunction("Ask", { execute: () => undefined, resume: () => {} }, "ask")
    .addListOfFunction([
      { id: "f1", name: "F1", fn: () => {} },
      { id: "f2", name: "F2", fn: () => {}, retry: { attempts: 2 } },
    ])
    .addFunction("Tries", () => {}, "tries")
    .retry({ attempts: 4 })
    .addSubFlowChart("s1", inner("S1"), "Side one")
    .addSubFlowChart("s2", inner("S2"), "Side two")
    .addSubFlowChartNext("sub", inner("Sub"), "Sub")
    .addLazySubFlowChartNext("lazy", () => inner("Lazy"), "Lazy")
    .addParallelForEach("Each", "each", {
      items: () => [],
      branch: () => subject(),
      maxBranches: 2,
      into: "each",
    })
    .addSelectorFunction("Pick", () => ["p1"], "pick", "some of them")
    .addFunctionBranch("p1", "P1", () => {})
    .addSubFlowChartBranch("p2", inner("P2"), "P2")
    .end()
    .addFunction("Body", () => {}, "body")
    .addDeciderFunction("Which", () => "x", "which")
    .addFunctionBranch("x", "X", () => {})
    .addSubFlowChartBranch("y", inner("Y"), "Y mounted")
    .addFunctionBranch("z", "Z", () => {}, undefined, { loopTo: "body" })
    .addPausableFunctionBranch("q", "Q", { execute: () => undefined, resume: () => {} })
    .setDefault("x")
    .end()
    .addFunction("Last", () => {}, "last");
  return built.build();
};

const PROGRAMS = {
  triage: () => record(triageOf(ROWS)),
  triage_evidence: () => record(triageOf(ROWS), { recorders: [narrative(), evidence()] }),
  linear: () => record(linear(), { input: { start: 1 } }),
  linear_delta: () =>
    record(linear(), {
      input: { start: 1 },
      dials: {
        commitValues: "delta",
        writeProvenance: "reads-prefix",
        readTracking: "summary",
        writeTracking: "summary",
      },
    }),
  bare: () =>
    record(linear(), {
      input: { start: 1 },
      recorders: [],
      dials: { readTracking: "off", writeTracking: "off" },
    }),
  decider: () => record(routed(() => "fast")(score(1)).build()),
  decider_evidence: () =>
    record(
      routed((scope) =>
        decide(
          scope,
          [
            { when: (s) => s.tier === "lead", then: "slow", label: "a lead" },
            { when: { score: { gt: 700 }, tier: { in: ["gold"] } }, then: "fast", label: "good" },
            { when: { score: { lt: 0 } }, then: "slow" },
          ],
          "slow",
        ),
      )(score(750)).build(),
      { recorders: [narrative(), evidence()] },
    ),
  decider_default: () => record(routed(() => "unheard of")(score(1)).build()),
  decider_lost: () =>
    record(
      score(1)
        .addDeciderFunction("Route", () => "nowhere", "route")
        .addFunctionBranch("fast", "Fast", word("fast"))
        .end()
        .build(),
    ),
  selector: () =>
    record(choosing(sick({ cpu: 90, mem: 95, net: "up" }))(), {
      recorders: [narrative(), evidence()],
    }),
  selector_none: () => record(choosing(sick({ cpu: 1, mem: 1, net: "up" }))()),
  selector_named: () => record(choosing(() => ["net", "cpu"])()),
  fork: () => record(parts(flowChart("Base", (scope) => void (scope.base = 21), "base")).build()),
  fan_out: () => record(uneven()),
  fan_out_nested: () => record(nested()),
  fan_out_empty: () => record(triageOf([])),
  subflow: () => record(mounted()),
  loop: () => record(looping()),
  loop_break: () => record(spinning()),
  pause: () => record(asking()),
  pause_resumed: () => record(asking(), { answer: true }),
  interrupted: () =>
    record(
      flowChart("Ask", (scope) => {
        scope.before = 1;
        scope.said = interrupt(scope, { reason: "which one?", expects: "a name" });
      }, "ask")
        .addFunction("Use", (scope) => scope.said, "use")
        .build(),
      { answer: "this one" },
    ),
  failing: () => record(failing()),
  redacted: () => record(secretive(), { policy: SECRETS }),
  streaming: () => record(streaming()),
  every_kind: () => record(everyKind()),
};

const [folder = ".", ...names] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const name of names.length ? names : Object.keys(PROGRAMS)) {
  const recording = await PROGRAMS[name]();
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(recording, null, 1)}\n`);
}
