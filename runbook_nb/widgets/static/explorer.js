// The explorer: one position, shown as a row, a node of the chart, a subject and a state.

const LISTS = [["all", "All rows"], ["decisions", "Decisions"], ["writes", "Writes"]];
const STATES = { now: "current", next: "next", done: "done", later: "later" };
const JUDGED = ["a", "b", "c", "d", "declined"];
const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set("svg g path polygon polyline ellipse text title desc style".split(" "));

// The runs of a cell: our words, data, badges. Of what was cut there is more to open.
const runs = (cell) =>
  cell.flatMap(([kind, text, more, sign], place) => {
    const gap = place ? [" "] : [];
    if (kind === "b") {
      const judged = JUDGED.includes(more);
      const look = judged ? { class: `rbx-tile rbx-${more}` } : {};
      return [...gap, sign ? glyph(sign, look) : null, sign ? " " : null,
        make("span", { class: judged ? "rbx-strong" : "rbw-dim" }, text)];
    }
    if (kind === "o") return [...gap, text];
    const said = make("samp", { class: "rbw-data" }, text);
    if (!more) return [...gap, kind === "p" ? text : said];
    return [
      make("details", {}, make("summary", {}, said),
        make("samp", { class: "rbw-data" }, more)),
    ];
  });

const cells = (tag, list) => list.map((one) => make(tag, {}, one));
const heads = (...names) =>
  make("thead", {},
    make("tr", {}, names.map((name) =>
      make("th", { scope: "col", class: `rbx-th rbx-${name.split(" ")[0]}-th` },
        make("span", { class: "rbw-dim" }, name)))));

// What a picture holds that is not drawn by us goes, whoever sent it.
const parsed = (text) => {
  const read = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (read.namespaceURI !== SVG || read.localName !== "svg") return null;
  for (const one of [read, ...read.querySelectorAll("*")]) {
    if (one.namespaceURI !== SVG || !DRAWN.has(one.localName)) {
      one.remove();
      continue;
    }
    for (const { name } of [...one.attributes]) {
      if (/^on|href|^style$/i.test(name)) one.removeAttribute(name);
    }
  }
  return document.importNode(read, true);
};

// Scroll within a box alone, so that the page stays where it is.
const reveal = (box, inner) => {
  const outer = box.getBoundingClientRect();
  const place = inner.getBoundingClientRect();
  const margin = Math.min(48, outer.height / 4);
  if (place.top < outer.top + margin) box.scrollTop += place.top - outer.top - margin;
  else if (place.bottom > outer.bottom - margin) {
    box.scrollTop += place.bottom - outer.bottom + margin;
  }
};

const render = ({ model, el }) => {
  const opening = model.get("opening");
  const { totals, fans } = opening;
  const total = totals.all;
  const last = Math.max(total - 1, 0);
  const view = frame(el, model, `Explorer ${opening.name}`);
  const { root, say, ask, act } = view;

  let at = null;
  let list = "all";
  let page = null;
  let flow = { id: "", nodes: new Map(), edges: [], names: [], note: "" };

  // -- parts --------------------------------------------------------------------------------

  const button = (label, press, has = {}) =>
    make("button", { type: "button", class: "rbw-btn", on: { click: act(press) }, ...has }, label);

  const whose = make("span", { class: "rbw-data" });
  const chooser = button([whose, glyph(" ▾")], () => subjects.toggle(chooser),
    { "aria-expanded": "false" });
  const kinds = LISTS.map(([kind, label]) =>
    button(label, () => choose(kind), {
      "aria-pressed": String(kind === list),
      disabled: !totals[kind],
    }));
  const bar = make("div", { class: "rbx-bar" },
    make("span", {}, make("strong", {}, "Explorer"), "\u2002",
      make("samp", { class: "rbw-data" }, opening.name), "\u2002",
      make("span", { class: "rbw-dim" }, opening.about)),
    make("span", { class: "rbx-tools" },
      fans.length ? make("span", { class: "rbx-pick" },
        make("span", { class: "rbw-dim" }, "subject"), " ", chooser) : null,
      total ? make("span", { class: "rbw-joined", role: "group", "aria-label": "rows" }, kinds)
        : null));

  const canvas = make("div", { class: "rbx-canvas" });
  const note = make("p", { class: "rbx-note rbw-dim", hidden: true });
  const pane = make("div", { class: "rbx-flow" }, canvas, note);
  const body = make("tbody");
  const above = make("div", { class: "rbx-more" });
  const below = make("div", { class: "rbx-more" });
  const rows = make("div", { class: "rbx-rows" }, above,
    make("table", { class: "rbx-tab", "aria-label": "rows of the walk" },
      heads("row", "type", "what happened"), body),
    below);
  const evidence = make("div",
    { class: "rbx-why", role: "region", "aria-label": "evidence", tabindex: "0" });
  const panel = make("div", { class: "rbx-panel", hidden: true });

  const slider = make("input", {
    type: "range", class: "rbx-range", min: 0, max: last, step: 1, value: 0, "aria-label": "row",
    on: { input: act(() => go(slider.valueAsNumber)) },
  });
  const place = make("span", { class: "rbx-place" });
  const ticks = make("div", { class: "rbx-ticks", "aria-hidden": "true" },
    (opening.ticks ?? []).map((step) => {
      const tick = make("span", { class: "rbx-tick" });
      tick.style.left = `calc(8px + (100% - 16px) * ${last ? step / last : 0})`;
      return tick;
    }));
  const goes = [
    ["|◀", "first row", () => 0],
    ["◀", "row before", () => Math.max(at.step - 1, 0)],
    ["▶", "next row", () => Math.min(at.step + 1, last)],
    ["▶|", "last row", () => last],
  ].map(([sign, name, to]) => button(glyph(sign), () => at && go(to()), { "aria-label": name }));
  const following = button("next decision", () => at && go(at.step, "next"),
    { disabled: !totals.decisions });
  const transport = make("div", { class: "rbx-go" },
    make("span", { class: "rbw-joined" }, goes), following,
    make("div", { class: "rbx-slide" }, slider, ticks), place,
    ticks.childElementCount < totals.decisions ? make("span", { class: "rbw-dim" },
      `${told(ticks.childElementCount)} of ${told(totals.decisions)} decisions ticked`) : null);

  const state = make("div", { class: "rbx-state" });

  root.append(bar);
  if (opening.lacking) {
    root.append(make("p", { class: "rbx-note" }, glyph("▲", { class: "rbw-sign" }), " ",
      opening.lacking));
  }
  const side = make("div", { class: "rbx-side" }, panel, rows, evidence);
  const panes = make("div", { class: "rbx-panes" }, pane, total || fans.length ? side : null);
  root.append(panes);
  if (total) root.append(transport, state);

  // -- the position -------------------------------------------------------------------------

  // While one answer is waited for, only the last of further wishes is kept.
  let wanted = null;
  let busy = false;
  const go = async (step, what = "look") => {
    wanted = { step, what };
    placed(step);
    if (busy) return;
    busy = true;
    try {
      while (wanted) {
        const wish = wanted;
        wanted = null;
        const answer = await ask(wish.what, { step: wish.step, flow: flow.id });
        if (answer) await show(answer, Boolean(wanted));
        else if (at) placed(at.step);
      }
    } finally {
      busy = false;
    }
  };

  const show = async (answer, more = false) => {
    at = answer;
    if (answer.picture) draw(answer.flow, answer.picture);
    remark(flow.note);
    light(answer.nodes);
    if (answer.step === null || answer.step === undefined) return;
    if (!more && model.get("step") !== answer.step) {
      model.set("step", answer.step);
      model.save_changes();
    }
    whose.textContent = answer.subject || "choose";
    placed(answer.step);
    prove(answer.evidence);
    tell(answer.state);
    if (more) return;
    say(answer.words);
    slider.setAttribute("aria-valuetext", answer.words);
    if (!page || !page.rows.some(([step]) => step === answer.step)) {
      const found = await ask("rows", { kind: list, step: answer.step });
      if (found) listed(found);
    }
    mark();
  };

  const placed = (step) => {
    slider.value = step;
    const made = at && at.evidence && at.step === step ? at.evidence : null;
    const dim = made && made.number
      ? ` · decision ${told(made.number)} of ${told(made.total)}` : "";
    place.replaceChildren("row ", make("strong", {}, told(step)), ` of ${told(total)}`,
      make("span", { class: "rbw-dim" }, dim));
  };

  // -- the chart ----------------------------------------------------------------------------

  let widest = 0;
  const draw = (id, picture) => {
    const { names, note } = picture;
    const focus = canvas.contains(document.activeElement);
    flow = { id, nodes: new Map(), edges: [], names, note, focus };
    canvas.replaceChildren();
    const drawn = picture.svg && parsed(picture.svg);
    if (!drawn) return;
    drawn.setAttribute("role", "group");
    drawn.setAttribute("aria-label", "flowchart");
    for (const node of drawn.querySelectorAll("[data-n]")) {
      const number = Number(node.dataset.n);
      flow.nodes.set(number, node);
      node.setAttribute("role", "button");
      node.setAttribute("tabindex", "-1");
      node.addEventListener("click", act(() => pick(number)));
    }
    for (const edge of drawn.querySelectorAll("[data-e]")) {
      const [from, to] = edge.dataset.e.split(" ").map(Number);
      flow.edges.push({ from, to, edge });
    }
    canvas.append(drawn);
    // As wide as the widest chart yet, so that the panes do not jump from subject to subject.
    widest = Math.min(Math.max(widest, picture.width + 34), 470);
    pane.style.setProperty("--rbx-wide", `${widest}px`);
  };

  const light = (states) => {
    for (const [number, node] of flow.nodes) {
      const word = states[number];
      for (const one of Object.keys(STATES)) node.classList.toggle(`rbx-${one}`, one === word);
      const what = word ? STATES[word] : "not on this way";
      node.setAttribute("aria-label", `${flow.names[number - 1]}, ${what}`);
      if (word === "now") {
        node.setAttribute("aria-current", "step");
        roam(number);
        reveal(canvas, node);
        if (flow.focus) node.focus({ preventScroll: true });
        flow.focus = false;
      } else node.removeAttribute("aria-current");
    }
    if (flow.nodes.size && ![...flow.nodes.values()].some((one) => one.tabIndex === 0)) {
      roam([...flow.nodes.keys()].sort((a, b) => a - b)[0]);
    }
    for (const { from, to, edge } of flow.edges) {
      const reached = ["done", "now"].includes(states[to]) && states[from];
      edge.classList.toggle("rbx-done", Boolean(reached));
      edge.classList.toggle("rbx-next", states[to] === "next" && Boolean(states[from]));
      edge.classList.toggle("rbx-later", states[to] === "later");
    }
  };

  const remark = (words) => {
    note.textContent = words;
    note.hidden = !words;
  };

  const roam = (number) => {
    for (const [one, node] of flow.nodes) node.setAttribute("tabindex", one === number ? 0 : -1);
  };

  const pick = async (number) => {
    roam(number);
    const found = await ask("node", { node: number, step: at.step ?? 0 });
    if (!found) return;
    if (found.step !== undefined) {
      if (!panel.hidden) subjects.close(false);
      await go(found.step);
    } else if (found.fan !== undefined && found.fan !== null) {
      say(found.words);
      await subjects.open(found.fan, flow.nodes.get(number));
    } else {
      say(found.words);
      remark(found.words);
    }
  };

  // Along the edges: down and up, and sideways among the ways of one decider.
  const along = (number, key) => {
    const out = flow.edges.filter((one) => one.from === number).map((one) => one.to);
    const into = flow.edges.filter((one) => one.to === number).map((one) => one.from);
    const lit = (list) => list.find((one) => Object.keys(STATES).some(
      (word) => flow.nodes.get(one)?.classList.contains(`rbx-${word}`))) ?? list[0];
    if (key === "ArrowDown") return lit(out);
    if (key === "ArrowUp") return lit(into);
    const ways = flow.edges.filter((one) => one.from === into[0]).map((one) => one.to);
    return ways[ways.indexOf(number) + (key === "ArrowRight" ? 1 : -1)];
  };

  canvas.addEventListener("keydown", act(async (event) => {
    const node = event.target.closest("[data-n]");
    if (!node) return;
    const number = Number(node.dataset.n);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      await pick(number);
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const to = flow.nodes.get(along(number, event.key));
      if (!to) return;
      roam(Number(to.dataset.n));
      to.focus();
    }
  }));

  // -- the rows -----------------------------------------------------------------------------

  const choose = async (kind) => {
    list = kind;
    page = null;
    LISTS.forEach(([one], n) => kinds[n].setAttribute("aria-pressed", String(one === kind)));
    const found = await ask("rows", { kind, step: at.step });
    if (found) {
      listed(found);
      mark();
    }
  };

  const listed = (found) => {
    page = found;
    const focused = body.contains(document.activeElement);
    body.replaceChildren(...found.rows.map(([step, type, text]) => {
      const press = make("button", { type: "button", class: "rbx-row", tabindex: "-1" }, text);
      const row = make("tr", { on: { click: act(() => go(step)) } },
        make("td", { class: "rbx-num" }, told(step)), make("td", { class: "rbw-dim" }, type),
        make("td", { title: text }, press));
      row.dataset.step = step;
      return row;
    }));
    const end = found.start + found.rows.length;
    const turn = (box, start, label) => box.replaceChildren(
      ...(label ? [button(label, async () => {
        const other = await ask("rows", { kind: list, start });
        if (!other) return;
        listed(other);
        mark(false);
        rows.scrollTop = start < found.start ? rows.scrollHeight : 0;
      })] : []));
    const { size } = found;
    turn(above, Math.max(found.start - size, 0),
      found.start ? `${told(Math.min(size, found.start))} rows before, of ${told(found.total)}` : "");
    turn(below, end, end < found.total
      ? `${told(Math.min(size, found.total - end))} rows after, of ${told(found.total)}` : "");
    if (focused) body.querySelector("button")?.focus();
  };

  const mark = (scroll = true) => {
    if (at.step === null) return;
    let current = null;
    for (const row of body.children) {
      const here = Number(row.dataset.step) === at.step;
      if (here) {
        current = row;
        row.setAttribute("aria-current", "true");
      } else row.removeAttribute("aria-current");
      row.querySelector("button").tabIndex = here ? 0 : -1;
    }
    if (!current && body.firstElementChild) body.querySelector("button").tabIndex = 0;
    if (current && scroll) {
      reveal(rows, current);
      if (body.contains(document.activeElement)) current.querySelector("button").focus();
    }
  };

  const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  body.addEventListener("keydown", act(async (event) => {
    const by = STEPS[event.key];
    if (!by && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    const here = page.rows.findIndex(([step]) => step === at.step);
    if (event.key === "Home" || event.key === "End") {
      await go(event.key === "Home" ? 0 : last);
      return;
    }
    const next = page.rows[Math.max(here + by, here < 0 ? 0 : -1)];
    if (next && here + by >= 0) await go(next[0]);
    else if (list === "all") await go(Math.min(Math.max(at.step + by, 0), last));
    else {
      const start = by > 0 ? page.start + page.rows.length : page.start - 1;
      if (start < 0 || start >= page.total) return;
      const other = await ask("rows", { kind: list, start });
      if (other) await go(other.rows[0][0]);
    }
  }));

  // -- the decision and the state -----------------------------------------------------------

  // Beside the chart there is room for so many letters of keys, values and limits.
  const ROOM = 30;
  const long = (cell) => cell.reduce((sum, [, text]) => sum + text.length, 0);
  const lettersOf = (rows) =>
    [1, 2, 4].reduce((sum, at) => sum + Math.max(0, ...rows.map((row) => long(row[at]))), 0);

  const prove = (made) => {
    evidence.replaceChildren();
    if (made && lettersOf(made.rows) > ROOM) panes.after(evidence);
    else if (!side.contains(evidence)) side.append(evidence);
    if (!made) {
      evidence.append(make("span", { class: "rbw-dim" }, "no decision on this way"));
      return;
    }
    const dim = [made.when, made.number ? `decision ${told(made.number)} of ${told(made.total)}` : ""]
      .filter(Boolean).join(", ");
    const caption = [make("strong", {}, made.stage || "Decision"), " ",
      make("span", { class: "rbw-dim" }, dim, made.place ? ", " : "",
        make("samp", { class: "rbw-data" }, made.place))];
    if (!made.rows.length) {
      evidence.append(make("div", {}, caption), make("p", { class: "rbx-note" }, made.words));
      return;
    }
    evidence.append(make("table", { class: "rbx-proof" }, make("caption", {}, caption),
      make("thead", { class: "rbw-live" }, make("tr", {},
        cells("th", ["rule", "key", "actual", "operator", "limit", "result"]))),
      make("tbody", {}, made.rows.map(([rule, key, actual, op, limit, result, strong]) =>
        make("tr", { class: strong && "rbx-strong" },
          cells("td", [rule, runs(key), runs(actual), runs(op), runs(limit), runs(result)]))))));
  };

  const tell = (found) => {
    if (!found) return;
    const caption = make("caption", {}, make("strong", {}, "State of ", found.whose), " ",
      make("span", { class: "rbw-dim" }, found.words));
    state.replaceChildren(make("table", { class: "rbx-tab rbx-keys" }, caption,
      found.held.length ? heads("key", "before", "after", "change") : "",
      make("tbody", {}, found.held.map(([key, before, after, [change, more]]) =>
        make("tr", { "aria-current": change ? "true" : null },
          make("td", {}, make("samp", { class: "rbw-data" }, key)),
          make("td", {}, runs(before)), make("td", { class: "rbx-after" }, runs(after)),
          make("td", {}, change ? make("strong", {}, change) : null,
            make("span", { class: "rbw-dim" }, change ? ` ${more}` : more)))))));
  };

  // -- the subjects -------------------------------------------------------------------------

  const subjects = (() => {
    const asked = { fan: 0, word: "", find: "", start: 0 };
    let opener = null;
    let typing = 0;
    const found = make("input", {
      type: "search", class: "rbw-in", "aria-label": "find a subject", placeholder: "find",
      on: {
        input: act(() => {
          clearTimeout(typing);
          typing = setTimeout(act(() => load({ find: found.value, start: 0 })), 200);
        }),
      },
    });
    const which = make("select", {
      class: "rbw-in", "aria-label": "fan-out",
      on: { change: act(() => load({ fan: which.selectedIndex, word: "", start: 0 })) },
    }, fans.map((fan) => make("option", {}, fan.name)));
    const chips = make("div", { class: "rbx-tools", role: "group", "aria-label": "outcome" });
    const shown = make("tbody");
    const foot = make("div", { class: "rbx-more" });
    const shut = button("close", () => subjects.close());
    panel.append(
      make("div", { class: "rbx-find" }, fans.length > 1 ? which : null, found, shut, chips),
      make("div", { class: "rbx-rows" },
        make("table", { class: "rbx-tab", "aria-label": "subjects" },
          heads("outcome", "subject", "decided by"), shown), foot));

    const load = async (changes) => {
      Object.assign(asked, changes);
      const answer = await ask("subjects", asked);
      if (!answer) return;
      chips.replaceChildren(...answer.outcomes.map(([, word, role, sign, count]) =>
        button([glyph(sign), ` ${told(count)} ${word}`],
          () => load({ word: asked.word === word ? "" : word, start: 0 }),
          { "aria-pressed": String(asked.word === word) })));
      shown.replaceChildren(...answer.found.map(([name, outcome, why, step]) =>
        make("tr", step === null ? {} : { on: { click: act(() => take(step)) } },
          make("td", {}, runs([outcome])),
          make("td", {}, step === null ? make("samp", { class: "rbw-data" }, name)
            : make("button", { type: "button", class: "rbx-row" },
              make("samp", { class: "rbw-data" }, name))),
          make("td", { class: "rbw-data", title: why }, why))));
      const end = answer.start + answer.found.length;
      const said = asked.find
        ? `${told(answer.found.length)} found; looked at ${told(answer.searched)} of ${told(answer.among)}`
        : answer.matching
          ? `${told(answer.start + 1)} to ${told(end)} of ${told(answer.matching)}`
          : "no subject";
      say(said);
      foot.replaceChildren(make("span", { class: "rbw-dim" }, said), " ",
        ...(asked.start ? [button("from the start", () => load({ start: 0 })), " "] : []),
        ...(answer.next === null ? []
          : [button(asked.find ? "search on" : "next", () => load({ start: answer.next }))]));
      panel.querySelector(".rbx-rows").scrollTop = 0;
    };
    const take = async (step) => {
      subjects.close();
      await go(step);
    };
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") subjects.close();
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const names = [...shown.querySelectorAll("button")];
      const here = names.indexOf(document.activeElement);
      const to = names[here + (event.key === "ArrowDown" ? 1 : -1)];
      if (!to || (here < 0 && document.activeElement !== found)) return;
      event.preventDefault();
      to.focus();
    });
    const open = async (fan, from) => {
      opener = from;
      panel.hidden = false;
      rows.hidden = true;
      evidence.hidden = true;
      chooser.setAttribute("aria-expanded", "true");
      which.selectedIndex = fan;
      await load(fan === asked.fan ? { start: 0 } : { fan, word: "", start: 0 });
      found.focus();
    };
    const close = (back = true) => {
      panel.hidden = true;
      rows.hidden = false;
      evidence.hidden = false;
      chooser.setAttribute("aria-expanded", "false");
      if (back && opener) opener.focus();
    };
    const toggle = (from) =>
      panel.hidden ? open((at && at.fan) ?? 0, from) : close();
    return { open, close, toggle };
  })();

  // -- the beginning ------------------------------------------------------------------------

  const moved = act(async () => {
    const step = model.get("step");
    if (at && step !== at.step && total) await go(step);
  });
  model.on("change:step", moved);

  const begin = act(async () => {
    if (opening.rows) listed(opening.rows);
    // It may have been moved since the first view was made.
    const step = model.get("step");
    const first = opening.at;
    if (first && (first.step === step || !total)) await show(first);
    if (total && !(at && first.picture)) await go(step);
  });
  begin();
  // There is nothing to scroll before there is a size.
  const sized = new ResizeObserver(() => {
    if (!rows.clientHeight || !at) return;
    sized.disconnect();
    light(at.nodes);
    mark();
  });
  sized.observe(rows);

  return () => {
    model.off("change:step", moved);
    sized.disconnect();
    view.done();
  };
};

export default { render };
