// The form of a tool: its fields, Run and Stop, how far the run has come, how it ended.

const BUSY = ["running", "stopping"];
const SIGNS = { completed: "✓", current: "▶", pending: "◌", skipped: "⤼" };
const ENDED = {
  finished: ["✓", "Finished"],
  failed: ["✕", "Failed"],
  stopped: ["✕", "Stopped"],
  refused: ["⊘", "Refused"],
  paused: ["◌", "Waiting for an answer"],
};
const PAUSE = 250;
let forms = 0;

const inputOf = (field, has) => {
  if (field.kind === "choice") {
    return make("select", { ...has, class: "rbw-in rbf-in" },
      make("option", { value: "" }, field.required ? "choose…" : "—"),
      field.choices.map((label, place) => make("option", { value: String(place) }, label)));
  }
  if (field.kind === "json") {
    return make("textarea", { ...has, class: "rbw-in rbf-in rbf-area rbw-data", rows: "3",
      spellcheck: "false" });
  }
  if (field.kind === "switch") return make("input", { ...has, type: "checkbox" });
  const types = { secret: "password", date: "date" };
  return make("input", {
    ...has,
    class: "rbw-in rbf-in",
    type: types[field.kind] ?? "text",
    inputmode: field.kind === "number" ? "decimal" : null,
    autocomplete: field.kind === "secret" ? "new-password" : "off",
    spellcheck: "false",
  });
};

const render = ({ model, el }) => {
  const { root, say, ask, act, settle, done } = frame(el, model, `Run ${model.get("title")}`);
  root.classList.add("rbf");
  const mine = `rbf-${(forms += 1)}`;
  const touched = new Set();
  let rows = new Map();
  let waiting = null;
  // What the kernel says of the fields while it is asked is of what stood there before.
  let asking = 0;
  let began = null;
  let heard = "";
  // Nothing moves while a button is pressed, or the press would miss it.
  let pressed = false;

  const head = make("div", { class: "rbf-head" });
  const grid = make("div", { class: "rbf-grid" });
  const general = make("div", { class: "rbf-problem rbf-general", id: `${mine}-general` });
  const run = make("button", { type: "submit", class: "rbw-btn rbw-main" }, "Run");
  const stop = make("button", { type: "button", class: "rbw-btn" }, "Stop");
  const said = make("div", { class: "rbf-said" });
  const bar = make("progress", { class: "rbf-bar", "aria-label": "branches done" });
  const steps = make("ol", { class: "rbf-steps", "aria-label": "stages" });
  const stale = make("div", { class: "rbf-stale" });
  const form = make("form", { class: "rbf-form", novalidate: true }, grid, general,
    make("div", { class: "rbf-row" }, run, stop, said), bar, steps, stale);
  root.append(head, form);

  const typed = () => {
    const entries = {};
    for (const [name, { field, input }] of rows) {
      if (field.kind === "secret") continue;
      entries[name] = field.kind === "switch" ? input.checked : input.value;
    }
    return entries;
  };
  const secrets = () => {
    const given = {};
    for (const [name, { field, input }] of rows) {
      if (field.kind === "secret" && input.dataset.typed) given[name] = input.value;
    }
    return given;
  };
  const tell = () => {
    clearTimeout(waiting);
    waiting = null;
    model.set("entries", typed());
    model.save_changes();
  };
  const put = async (what, about) => {
    asking += 1;
    try {
      return await ask(what, about);
    } finally {
      asking -= 1;
      showEntries();
    }
  };
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(tell, PAUSE);
  };

  const drawField = (field, place) => {
    const id = `${mine}-${place}`;
    const about = [];
    if (field.description || field.hint) about.push(`${id}-about`);
    about.push(`${id}-problem`);
    const input = inputOf(field, {
      id,
      "aria-describedby": about.join(" "),
      "aria-required": field.required ? "true" : null,
    });
    const problem = make("div", { class: "rbf-problem", id: `${id}-problem` });
    const label = make("label", { for: id, class: "rbf-label" },
      make("span", { class: "rbw-data" }, field.title),
      field.required ? make("span", { class: "rbf-req" }, " required") : null);
    const ended = /[.!?]$/.test(field.description);
    const hint = field.hint && field.hint[0].toUpperCase() + field.hint.slice(1);
    const lines = [field.description, hint].filter(Boolean).join(ended ? " " : " · ");
    const note = lines && make("div", { class: "rbf-about rbw-dim", id: `${id}-about` }, lines);
    input.addEventListener("input", () => {
      if (field.kind === "secret") input.dataset.typed = "1";
      else later();
    });
    input.addEventListener("change", act(async () => {
      if (field.kind !== "secret") tell();
      // Nothing is called wrong before the kernel has looked at it.
      const answer = field.kind === "secret"
        ? await ask("secret", { [field.name]: input.value })
        : await put("check", { entries: typed() });
      if (answer) touched.add(field.name);
      showFaults();
    }));
    rows.set(field.name, { field, input, problem, note });
    if (field.kind === "switch") {
      return make("div", { class: "rbf-field" },
        make("div", { class: "rbf-switch" }, input, label), note || null, problem);
    }
    const wide = field.kind === "json" ? " rbf-wide" : "";
    return make("div", { class: `rbf-field${wide}` }, label, input, note || null, problem);
  };

  const drawFields = () => {
    rows = new Map();
    head.replaceChildren(make("strong", { class: "rbw-data rbf-title" }, model.get("title")), " ",
      make("span", { class: "rbw-dim" }, model.get("about")));
    grid.replaceChildren(...model.get("fields").map(drawField));
    showEntries();
    showFilled();
    showFaults();
  };

  const showEntries = () => {
    const entries = model.get("entries");
    for (const [name, { field, input }] of rows) {
      if (field.kind === "secret" || waiting !== null || asking) continue;
      if (field.kind === "switch") input.checked = entries[name] === true;
      else if (input.value !== entries[name]) input.value = entries[name] ?? "";
    }
  };
  const showFilled = () => {
    const filled = new Set(model.get("filled"));
    for (const [name, { field, input }] of rows) {
      if (field.kind !== "secret") continue;
      input.placeholder = filled.has(name) ? "given, not shown" : "";
      if (!filled.has(name) && document.activeElement !== input) input.value = "";
    }
  };
  const showFaults = () => {
    if (pressed) return;
    const faults = model.get("faults");
    for (const [name, { input, problem, note }] of rows) {
      const fault = touched.has(name) ? faults[name] : undefined;
      problem.replaceChildren(...(fault ? [glyph("▲", { class: "rbw-sign" }), ` ${fault}`] : []));
      if (note) note.hidden = Boolean(fault);
      if (fault) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    const rest = faults[""];
    general.replaceChildren(...(rest ? [glyph("▲", { class: "rbw-sign" }), ` ${rest}`] : []));
  };

  const seconds = () => (began === null ? "" : `${Math.round((Date.now() - began) / 1000)} s`);
  const showStatus = () => {
    const status = model.get("status");
    const busy = BUSY.includes(status);
    const progress = model.get("progress");
    const outcome = model.get("outcome");
    if (busy && began === null) began = Date.now();
    if (!busy) began = null;
    run.disabled = busy;
    stop.disabled = status !== "running";
    root.setAttribute("aria-busy", busy ? "true" : "false");
    const words = [];
    if (busy) {
      const [verb, until] = status === "running" ? ["Running", ""]
        : ["Stopping", " once what runs now has ended"];
      words.push(glyph("▶", { class: "rbf-sign" }), " ", make("strong", {}, verb), until,
        progress.at ? `, stage ${progress.at} of ${progress.of}` : "",
        make("span", { class: "rbf-time rbw-dim" }, seconds() && ` · ${seconds()}`));
    } else if (ENDED[status]) {
      const [sign, word] = ENDED[status];
      const bad = status !== "finished";
      words.push(glyph(sign, { class: bad ? "rbw-sign" : "rbf-sign" }), " ",
        make("strong", {}, word));
      if (outcome.stage) words.push(" at ", make("strong", { class: "rbw-data" }, outcome.stage));
      if (outcome.what) words.push(": ", make("span", { class: status === "stopped" ? "" : "rbw-data" }, outcome.what));
      if (outcome.fix) words.push(`; ${outcome.fix}`);
      if (outcome.said) words.push(`, ${outcome.said}`);
    }
    said.replaceChildren(...words);
    said.classList.toggle("rbf-bad", !busy && status !== "finished");

    const list = progress.steps ?? [];
    const present = list.find((step) => step.state === "current" && step.total);
    bar.hidden = !busy || !present;
    if (present) {
      bar.max = present.total;
      bar.value = present.done;
    }
    steps.hidden = !list.length || !(busy || (ENDED[status] && outcome.what));
    steps.replaceChildren(...list.map((step) =>
      make("li", { class: `rbf-step rbf-${step.state}` },
        step.state === "current" && !busy ? glyph(ENDED[status][0], { class: "rbw-sign" })
          : glyph(SIGNS[step.state]), " ",
        make("span", {}, step.name),
        step.total ? make("span", { class: "rbw-dim" }, ` ${told(step.done)} of ${told(step.total)}`)
          : null,
        step.failed ? make("span", {}, ` · ${told(step.failed)} failed`) : null)));
    if (progress.hidden) {
      steps.append(make("li", { class: "rbf-step rbw-dim" }, `and ${progress.hidden} more stages`));
    }
    stale.replaceChildren(...(model.get("stale") && !busy && ENDED[status]
      ? [glyph("⋯"), " The fields have changed since; what is below is of what they were."] : []));
    // Heard once per stage and once at the end, not at every count.
    const aloud = busy ? `running ${progress.stage ?? ""}` : said.textContent;
    if (aloud !== heard && ENDED[status] === undefined === busy) say((heard = aloud));
  };

  form.addEventListener("submit", act(async (event) => {
    event.preventDefault();
    if (run.disabled) return;
    clearTimeout(waiting);
    waiting = null;
    const answer = await put("run", { entries: typed(), secrets: secrets() });
    if (!answer) return;
    for (const name of rows.keys()) touched.add(name);
    showFaults();
    if (answer.begun) return;
    const [first] = [...rows].filter(([name]) => answer.faults[name]);
    if (first) first[1].input.focus();
    const count = Object.keys(answer.faults).length;
    say(count === 1 ? "1 field needs another value" : `${count} fields need another value`);
  }));
  stop.addEventListener("click", act(() => ask("stop")));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !stop.disabled) {
      event.preventDefault();
      stop.click();
    }
    breakLine(event);
    if (event.key === "Enter" && event.target.tagName === "INPUT") {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  const press = () => {
    pressed = true;
  };
  const release = () => {
    pressed = false;
    setTimeout(showFaults);
  };
  root.addEventListener("pointerdown", press);
  window.addEventListener("pointerup", release);
  window.addEventListener("pointercancel", release);

  const clock = setInterval(() => {
    const time = said.querySelector(".rbf-time");
    if (time && began !== null) time.textContent = ` · ${seconds()}`;
  }, 1000);
  const heardOf = {
    "change:fields change:title change:about": drawFields,
    "change:entries": showEntries,
    "change:filled": showFilled,
    "change:faults": showFaults,
    "change:status change:progress change:outcome change:stale": showStatus,
    "change:entries change:status": settle,
  };
  for (const [events, draw] of Object.entries(heardOf)) {
    for (const event of events.split(" ")) model.on(event, draw);
  }
  drawFields();
  showStatus();
  return () => {
    clearTimeout(waiting);
    clearInterval(clock);
    window.removeEventListener("pointerup", release);
    window.removeEventListener("pointercancel", release);
    for (const [events, draw] of Object.entries(heardOf)) {
      for (const event of events.split(" ")) model.off(event, draw);
    }
    done();
  };
};

export default { render };
