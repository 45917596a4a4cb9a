// The rule lab: a form for rules on the left, what the draft comes to on the right. What is shown
// is the trait `told`; every change is asked of the kernel, which judges again and tells anew.

const SVG = "http://www.w3.org/2000/svg";
const draw = (tag, has = {}, ...inside) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(has)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};
const data = (text) => make("span", { class: "rbw-data" }, text);
const MONO = "font-family:var(--jp-code-font-family,monospace);font-size:12px";
const dim = (...text) => make("span", { class: "rbw-dim" }, ...text);
const signed = (n) => (n > 0 ? `+${told(n)}` : n < 0 ? `−${told(-n)}` : "0");

const render = ({ model, el }) => {
  const { root, say, ask, act, settle, done } = frame(el, model, "Rule lab");
  const head = make("div", { class: "rbwl-bar" });
  const form = make("div", { class: "rbwl-form", role: "group", "aria-label": "Rules" });
  const result = make("div", { class: "rbwl-result", role: "group", "aria-label": "What changes" });
  const boxes = new Map();
  const open = new Set();
  const keys = make("datalist", { id: `rbl-${Math.random().toString(36).slice(2)}` });
  let lab = model.get("told");
  const waiting = new Map();
  let sending = null;

  // Of what comes while the kernel judges, the newest of each field is asked, in their order.
  const send = async () => {
    let taken = true;
    try {
      for (const [name, about] of waiting) {
        waiting.delete(name);
        taken = Boolean(await ask("edit", about)) && taken;
      }
    } finally {
      sending = null;
      settle();
    }
    if (!taken) around(); // what was not taken does not stand there
    return taken;
  };
  const change = (about) => {
    const { what, rule, args = [], branch } = about;
    // The last argument is the new value; each added rule is one of its own.
    const name = what === "add" ? about
      : JSON.stringify([what, rule, args.slice(0, -1), branch === undefined]);
    waiting.delete(name);
    waiting.set(name, about);
    sending ??= send();
    return sending;
  };
  // What was changed is judged before it is kept or copied; a change that failed has said so.
  const settled = async () => sending ?? true;
  const edit = (rule, what, ...args) => change({ what, rule: rule.id, args });

  // --- parts ------------------------------------------------------------------------------------

  const word = (value) => lab.words.find((one) => one.value === value) ?? { word: value, role: "" };
  const tile = (value) => {
    const one = word(value);
    return glyph(one.glyph ?? "·", { class: "rbwl-tile",
      style: `${one.fill ? `background:${one.fill};` : ""}font-size:${one.size ?? 12}px` });
  };
  const verdict = (value) => make("span", { class: "rbwl-cond", style: "flex-wrap:nowrap" }, tile(value), word(value).word);
  const chip = (sign, text, line = "solid") =>
    make("span", { class: "rbwl-chip", style: `border:1px ${line} var(--rbw-edge)` }, glyph(sign), ` ${text}`);

  const picked = (options, chosen, label, on, has = {}) => {
    const made = make("select", { class: "rbw-in rbwl-pick", "aria-label": label, ...has, on: { change: act(on) } });
    for (const [value, text] of options) {
      const option = make("option", { value }, text);
      option.selected = value === chosen;
      made.append(option);
    }
    return made;
  };
  // What is typed counts when it is left or Enter is pressed, once.
  const typed = (value, label, on, has = {}) => {
    let sent = value;
    const send = act((event) => {
      if (event.target.value === sent) return undefined;
      sent = event.target.value;
      return on(event);
    });
    return make("input", { class: "rbw-in", value, "aria-label": label, ...has, on: {
      change: send,
      focus: (event) => { sent = event.target.value; },
      keydown: (event) => (event.key === "Enter" ? send(event) : undefined),
    } });
  };

  const signOf = (op) => (lab.ops.find(([known]) => known === op) ?? [op, op])[1];
  const SKIP = ["skip", "skip the rule"];
  const leads = (chosen, label, on, others = []) => {
    const values = [...lab.words.map((one) => [one.value, one.word]), ...others];
    if (!values.some(([value]) => value === chosen)) values.push([chosen, chosen]);
    return make("span", { class: "rbwl-cond" }, tile(chosen), picked(values, chosen, label, on));
  };

  // As wide as what is in it, with so many pixels around it.
  const wide = (text, around) => `calc(${Math.min(Math.max(String(text).length, 3), 24)}ch + ${around}px)`;

  const field = (rule, one, value, kind, name, send) => {
    if (kind === "bool" || kind === "presence") {
      const words = kind === "bool" ? ["true", "false"] : ["yes", "no"];
      return picked([["1", words[0]], ["", words[1]]], value ? "1" : "", name,
        (event) => send(event.target.value === "1"), { "data-field": "value" });
    }
    const type = { number: "number", decimal: "number", date: "date", span: "number" }[kind] ?? "text";
    return typed(value, name, (event) => send(event.target.value), {
      type, step: type === "number" ? "any" : undefined,
      class: `rbw-in${type === "number" ? " rbwl-num" : ""}`, "data-field": "value",
      style: type === "date" ? MONO : `${MONO};width:${wide(value, type === "number" ? 36 : 22)}`,
    });
  };

  const listed = (rule, one, name, send) => {
    const each = (element, place) =>
      make("li", { class: "rbwl-tag" }, data(String(element.value)), make("button", {
        type: "button", class: "rbwl-x", "aria-label": `Remove ${element.value} from ${name}`,
        on: { click: act(() => send(one.value.filter((_, n) => n !== place))) },
      }, "×"));
    const kind = one.value[0]?.kind ?? "text";
    const add = typed("", `Add to ${name}`, (event) => {
      const text = event.target.value;
      if (text !== "") return send([...one.value, { kind, value: text }]);
    }, { placeholder: "add", style: `${MONO};width:84px`, "data-field": "value" });
    return make("ul", { class: "rbwl-list" }, one.value.map(each), make("li", {}, add));
  };

  const limited = (rule, one, number) => {
    const name = `limit of ${one.key}, ${rule.id < 0 ? number : `rule ${number}`}`;
    const send = (value) => edit(rule, "limit", one.key, one.op, one.kind, value);
    if (one.kind === "hidden" || one.kind === "fixed") {
      return make("span", {}, data(String(one.value)), one.instead ? dim(` ${one.instead}`) : "");
    }
    if (one.kind === "list") return listed(rule, one, name, send);
    if (one.kind.startsWith("between_")) {
      const ends = one.value.map((end) => ({ ...end }));
      return make("span", {}, ends.map((end, n) => [n ? " and " : "",
        field(rule, one, end.value, end.kind, `${n ? "upper" : "lower"} ${name}`, (value) => {
          ends[n] = { ...end, value };
          return send(ends);
        })]).flat());
    }
    return field(rule, one, one.value, one.kind, name, send);
  };

  const slid = (rule, one, number) => {
    const { min, max, step, old } = one.slider;
    const share = (old - min) / (max - min);
    const range = make("input", {
      type: "range", min, max, step, value: one.value, "data-field": "range",
      "aria-label": `limit of ${one.key}, rule ${number}`,
      on: {
        input: act((event) => edit(rule, "limit", one.key, one.op, one.kind, event.target.value)),
      },
    });
    // Where the thumb's middle stands at the limit of before.
    const tick = make("span", { class: "rbwl-tick", title: `was ${old}`, hidden: old === null,
      style: `left:calc(${8 - 16 * share}px + ${100 * share}% - 1px)` });
    return make("div", { class: "rbwl-line rbwl-slide", style: "padding-left:30px" },
      make("span", { class: "rbwl-track" }, range, tick),
      make("span", { class: "rbw-dim rbwl-small" }, `${min} to ${max} ${one.unit}${
        one.slider.beyond && `; ${one.slider.beyond}`}`));
  };

  // --- one rule ---------------------------------------------------------------------------------

  const fires = (now, before) => {
    if (now === null) return [];
    if (before === null) return [dim("fires "), make("strong", {}, told(now))];
    if (now === before) return [dim(`fired ${told(now)}, as before`)];
    return ["fired ", make("strong", {}, told(now)), `, before ${told(before)}`];
  };

  const counted = (rule) => [...(rule.silent ? [rule.silent] : fires(rule.fired, rule.before)),
    rule.changed ? dim(` · ${rule.changed.replace("->", "→")}`) : ""];

  const condition = (rule, one, number, first) => {
    const line = make("span", { class: "rbwl-cond rbwl-one" });
    const bad = rule.wrong && rule.wrong.key === one.key;
    if (!first) line.append(dim("and "));
    const key = typed(one.key, `key of rule ${number}`,
      (event) => edit(rule, "key", one.key, event.target.value), {
        style: `${MONO};width:${wide(one.key, 20)}`, "data-field": "key",
        "aria-invalid": bad ? "true" : undefined, spellcheck: "false",
      });
    // The mark of a list of proposals takes room, so it is there only while something is typed.
    key.addEventListener("focus", () => key.setAttribute("list", keys.id));
    key.addEventListener("blur", () => key.removeAttribute("list"));
    line.append(key,
      picked(lab.ops, one.op, `operator of ${one.key}, rule ${number}`,
        (event) => edit(rule, "operator", one.key, one.op, event.target.value),
        { "data-field": "op", style: `width:${signOf(one.op).length + 4}ch` }),
      limited(rule, one, number));
    if (one.unit && !one.slider) line.append(dim(one.unit));
    return line;
  };

  let dragged = null;
  const numberOf = (rule) => lab.first + lab.rules.findIndex((one) => one.id === rule.id) + 1;

  const handle = (rule, number) => make("button", {
    type: "button", class: "rbwl-x", draggable: "true", "data-field": "grip",
    "aria-label": `Rule ${number}: move with the arrow keys up and down`,
    title: "drag, or arrow keys",
    on: {
      keydown: act((event) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!by) return undefined;
        event.preventDefault();
        event.stopPropagation();
        const to = numberOf(rule) + by;
        if (to < 1 || to > lab.total) return undefined;
        return edit(rule, "move", to);
      }),
      dragstart: (event) => {
        event.stopPropagation();
        dragged = rule;
        event.dataTransfer.setData("text/plain", `rule ${number}`);
        event.dataTransfer.effectAllowed = "move";
      },
      dragend: () => { dragged = null; },
    },
  }, glyph("⋮⋮"));

  const dropped = (rule) => ({
    dragover: (event) => dragged && event.preventDefault(),
    drop: act((event) => {
      event.preventDefault();
      event.stopPropagation();
      // What was dragged from elsewhere is none of our rules.
      if (!dragged || dragged.id === rule.id) return undefined;
      return edit(dragged, "move", numberOf(rule));
    }),
  });

  const said = (one) => `${one.key} ${signOf(one.op)} ${
    one.kind === "presence" ? "" : one.kind === "text" ? `"${one.value}"`
      : Array.isArray(one.value) ? `[${one.value.map((each) => each.value).join(", ")}]` : one.value}`;

  const folded = (rule, number) => [
    make("div", { class: "rbwl-line" }, handle(rule, number), make("span", {}, number),
      data(rule.function ?? rule.conditions.map(said).join(" and ")), " → ", verdict(rule.then),
      make("span", { class: "rbwl-gap" }), make("span", { class: "rbwl-tag rbwl-small" }, "never fired"),
      make("button", {
        type: "button", class: "rbwl-x", "data-field": "open", "aria-expanded": "false",
        "aria-label": `Open rule ${number}`,
        on: { click: () => { open.add(rule.id); show(); } },
      }, glyph("▸"))),
  ];

  const filled = (rule, number) => [
    make("div", { class: "rbwl-line" }, handle(rule, number), make("span", {}, number),
      rule.function ? data(rule.function)
        : rule.conditions.map((one, n) => condition(rule, one, number, !n)),
      "→", leads(rule.then, `verdict of rule ${number}`,
        (event) => edit(rule, "verdict", event.target.value))),
    ...rule.conditions.filter((one) => one.slider).map((one) => slid(rule, one, number)),
    make("div", { class: "rbwl-line", style: "margin:6px 0 2px;flex-wrap:nowrap" },
      typed(rule.label, `label of rule ${number}`, (event) => edit(rule, "label", event.target.value), {
        style: "flex:1;min-width:0", placeholder: "why, in a sentence", "data-field": "label",
      }),
      lab.rules.length > 1 ? make("button", {
        type: "button", class: "rbwl-x", "aria-label": `Remove rule ${number}`, title: "remove",
        on: { click: act(() => edit(rule, "remove")) },
      }, "×") : null),
    make("div", { class: "rbwl-told rbwl-small" }, counted(rule)),
    rule.wrong ? make("div", { class: "rbwl-why rbwl-small", role: "alert" },
      glyph("▲", { class: "rbw-sign" }), " ", make("strong", {}, "not applied:"), ` ${rule.wrong.what}.`,
      rule.wrong.instead ? [" Did you mean ", make("button", {
        type: "button", class: "rbw-btn", style: MONO, "data-field": "near",
        on: { click: act(() => edit(rule, "key", rule.wrong.key, rule.wrong.instead)) },
      }, rule.wrong.instead)] : "",
      rule.wrong.kept ? dim(" Judged as it was before.") : "") : null,
  ];

  // A box that somebody is at work in keeps its fields; what is said in it is said anew.
  const shape = (rule, number, fold) => JSON.stringify([number, fold, rule.function, rule.wrong,
    rule.then, lab.rules.length, lab.words.length, rule.conditions.map((one) => [one.key, one.op, one.kind,
      one.kind === "list" && one.value, one.slider && [one.slider.min, one.slider.max]])]);

  const patch = (box, rule) => {
    const slot = box.querySelector(".rbwl-told");
    if (slot) {
      slot.replaceChildren(...counted(rule));
    }
    const own = document.activeElement;
    const put = (at, value) => {
      if (at && at !== own && at.value !== String(value)) at.value = value;
    };
    put(box.querySelector("[data-field=label]"), rule.label);
    const fields = box.querySelectorAll(".rbwl-one");
    const ranges = box.querySelectorAll(".rbwl-slide");
    let sliding = 0;
    rule.conditions.forEach((one, n) => {
      if (one.kind === "list" || one.kind.startsWith("between_")) return;
      const value = one.kind === "bool" || one.kind === "presence" ? (one.value ? "1" : "") : one.value;
      put(fields[n] && fields[n].querySelector("[data-field=value]"), value);
      if (!one.slider) return;
      const range = ranges[sliding++].querySelector("input");
      put(range, one.value);
    });
  };

  const box = (rule, number) => {
    const fold = Boolean(rule.silent) && rule.before === 0 && !rule.touched && !open.has(rule.id);
    const now = shape(rule, number, fold);
    const known = boxes.get(rule.id);
    if (known && known.shape === now) {
      if (!fold) patch(known.at, rule);
      return known.at;
    }
    const at = known?.at ?? make("div", { class: "rbwl-rule", role: "group" });
    if (!known) for (const [name, call] of Object.entries(dropped(rule))) at.addEventListener(name, call);
    at.setAttribute("aria-label", `Rule ${number}`);
    at.classList.toggle("rbwl-wrong", Boolean(rule.wrong));
    const own = at.contains(document.activeElement) && document.activeElement.dataset.field;
    at.replaceChildren(...(fold ? folded(rule, number) : filled(rule, number)).flat()
      .filter((one) => one !== null && one !== undefined && one !== false && one !== ""));
    if (own) (at.querySelector(`[data-field=${own}]`) ?? at.querySelector("[data-field]"))?.focus();
    boxes.set(rule.id, { at, shape: now });
    return at;
  };

  // What decides where no rule does, and what none is asked about. It is made anew each time.
  const focused = (at, fill) => {
    const own = [...at.querySelectorAll("[data-field]")].indexOf(document.activeElement);
    fill();
    if (own >= 0) at.querySelectorAll("[data-field]")[own]?.focus();
  };
  const ends = [["default", "otherwise", "default"], ["unreadable", "a value is unreadable", "unreadable"]]
    .map(([what, name, tag]) => {
      const at = make("div", { class: "rbwl-rule rbwl-default", role: "group",
        "aria-label": what[0].toUpperCase() + what.slice(1) });
      const fill = () => {
        const one = lab[what];
        at.hidden = !one;
        if (!one) return;
        const branch = leads(one.then, `verdict of the ${what}`,
          (event) => change({ what, branch: event.target.value }), what === "unreadable" ? [SKIP] : []);
        branch.lastChild.dataset.field = "branch";
        at.replaceChildren(
          make("div", { class: "rbwl-line" }, `${name} →`, branch, make("span", { class: "rbwl-gap" }),
            make("span", { class: "rbwl-tag rbwl-small" }, tag)),
          one.label === null ? "" : typed(one.label, `label of the ${what}`,
            (event) => change({ what, label: event.target.value }),
            { style: "width:100%;margin:6px 0 2px", placeholder: "why, in a sentence", "data-field": "label" }),
          make("div", { class: "rbwl-small" }, one.fired === one.before ? dim(`${told(one.fired)}, as before`)
            : make("span", {}, make("strong", {}, told(one.fired)), `, before ${told(one.before)}`)));
      };
      return { at, fill };
    });
  const grounds = make("div");
  const ground = (one) => {
    const number = -one.id;
    const text = (what, label) => typed(one[what], `${label} ${number}`,
      (event) => edit(one, what, event.target.value), { style: "flex:1;min-width:0", "data-field": what });
    return make("div", { class: "rbwl-rule rbwl-default", role: "group", "aria-label": `Ground outside ${number}` },
      make("div", { class: "rbwl-line" }, "outside: ", one.conditions.map((each, n) =>
        make("span", { class: "rbwl-cond" }, n ? "and " : "", data(each.key), data(signOf(each.op)),
          limited(one, each, `ground ${number}`)))),
      make("div", { class: "rbwl-line" }, text("what", "what lies outside,")),
      make("div", { class: "rbwl-line" }, text("why", "why it lies outside,")));
  };
  const around = () => {
    ends.forEach(({ at, fill }) => focused(at, fill));
    focused(grounds, () => grounds.replaceChildren(...lab.outside.map(ground)));
  };

  const more = make("button", { type: "button", class: "rbw-btn", on: { click: act(() => change({ what: "add" })) } },
    "+ rule");
  const cut = make("div", { class: "rbwl-line" });
  const turn = (words, first) => make("button", { type: "button", class: "rbw-btn",
    on: { click: act(() => ask("page", { first })) } }, words);

  // --- what it comes to -------------------------------------------------------------------------

  const table = (label, note, columns, rows) => make("table", { class: "rbwl-table" },
    make("caption", {}, make("strong", {}, label), note ? dim(` ${note}`) : ""),
    make("thead", {}, make("tr", {}, columns.map(([name, right]) =>
      make("th", { scope: "col", class: right ? "rbwl-right" : undefined }, name)))),
    make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell, n) =>
      make(n ? "td" : "th", { scope: n ? undefined : "row", class: columns[n][1] ? "rbwl-right" : undefined },
        cell))))));

  const bars = (spread) => {
    const { edges, counts, labels } = spread;
    const wide = 510, high = 96, foot = 20, top = 22;
    const low = edges[0], x = (value) => ((value - low) / (edges[edges.length - 1] - low)) * wide;
    const tallest = Math.max(...counts);
    const y = (count) => (count ? Math.max((count / tallest) * (high - top), 2) : 0);
    const made = draw("svg", { viewBox: `-4 0 ${wide + 8} ${high + foot}`, role: "img", class: "rbwl-hist",
      "aria-label": `${spread.key}: ${spread.words}; the limit is ${spread.new.text}${
        spread.further ? ` and ${spread.further.text}` : ""}${spread.old ? `, it was ${spread.old.text}` : ""}` });
    const gap = Math.min(1, x(edges[1]) / 8);
    counts.forEach((count, n) => made.append(draw("rect", { class: spread.inside[n] ? "rbwl-b" : "", x: x(edges[n]) + gap,
      y: high - y(count), width: Math.max(x(edges[n + 1]) - x(edges[n]) - 2 * gap, 1), height: y(count) },
    draw("title", {}, `${labels[n]}: ${count}`))));
    made.append(draw("line", { class: "rbwl-axis", "stroke-width": 1, x1: 0, x2: wide, y1: high, y2: high }));
    const most = counts.indexOf(tallest);
    const words = (text, at, level, anchor, has = "") =>
      draw("text", { x: at, y: level, "text-anchor": anchor, "font-weight": has ? 600 : 400 }, text);
    const free = (at) => [spread.new, spread.old].every((one) => !one || Math.abs(x(one.at) - at) > 40);
    const peak = x((edges[most] + edges[most + 1]) / 2);
    if (free(peak)) made.append(words(told(tallest), peak, high - y(tallest) - 4, "middle"));
    const { old, new: now } = spread;
    const moved = old && old.at !== now.at;
    const line = (one, look, dashes = "none") => draw("line", { class: look, "stroke-dasharray": dashes, x1: x(one.at), x2: x(one.at), y1: 2, y2: high });
    const right = (one) => x(one.at) < wide - 90;
    const apart = moved ? Math.abs(x(old.at) - x(now.at)) : Infinity;
    const first = moved && x(old.at) < x(now.at);
    const after = right(now) && (first || apart > 60);
    if (moved) {
      made.append(line(old, "rbwl-axis", "2 3"));
      // To the side where the draft's label is not, else below it.
      const roomy = after && apart > 60;
      const tight = first && !roomy && x(old.at) < 70;
      const outward = first ? tight || roomy : right(old);
      const low = first ? tight || (!after && apart < 90) : !outward && after && apart < 130;
      made.append(words(`${lab.before}: ${old.text}`, x(old.at) + (outward ? 6 : -6), low ? 28 : 13,
        outward ? "start" : "end"));
      const [a, b] = [x(old.at), x(now.at)].sort((one, other) => one - other);
      if (spread.between) {
        made.append(draw("path", { class: "rbwl-axis", "stroke-width": 1, d: `M${a + 2} 58V50H${b - 2}V58`, fill: "none" }));
        made.append(words(`${told(spread.between)} ${spread.between === lab.changed ? "change" : "between"}`, Math.min(Math.max((a + b) / 2, 36), wide - 36), 44,
          "middle", "rbwl-strong"));
      }
    }
    made.append(line(now, "rbwl-new"));
    if (spread.further) made.append(line(spread.further, "rbwl-new"));
    made.append(words(`${moved || !old ? "draft" : lab.before}: ${now.text}`, x(now.at) + (after ? 6 : -6), 13,
      after ? "start" : "end", "rbwl-strong"));
    const long = Math.max(...labels.map((label) => label.length)) * 7 + 30;
    const every = Math.max(1, Math.ceil((labels.length * long) / wide));
    labels.forEach((label, n) => {
      const last = n === labels.length - 1;
      if (last ? !spread.open : n % every || x(edges[n]) > wide - long / 2) return;
      const middle = spread.centred && !last ? x(edges[1]) / 2 : 0;
      made.append(words(last ? `${labels[n - 1]}+` : label, x(edges[n]) + middle, high + 15,
        last ? "end" : n || long < 60 ? "middle" : "start"));
    });
    return make("figure", { style: "margin:0" },
      make("figcaption", {}, make("strong", {}, data(spread.key)),
        make("span", { class: "rbw-dim rbwl-small" }, ` ${spread.words}`)), made);
  };

  const changes = () => {
    const rows = lab.flips;
    const single = new Set(rows.map((one) => one.key)).size <= 1;
    const alike = lab.transitions.startsWith("all");
    const columns = [["subject"]];
    if (!single) columns.push(["key"]);
    columns.push([single && rows[0].key ? rows[0].key : "actual", rows.every((one) => one.number)]);
    columns.push([`${lab.before} decided by`]);
    if (!alike) columns.push(["draft"]);
    return table("Changed", `${rows.length} of ${told(lab.changed)} shown, ${lab.transitions}`, columns,
      rows.map((one) => [data(one.subject), ...(single ? [] : [data(one.key ?? "")]), data(one.actual),
        one.decided, ...(alike ? [] : [verdict(one.after)])]));
  };

  const results = () => {
    const parts = [make("div", { class: "rbwl-line", style: "margin:0 0 8px" }, make("strong", { class: "rbwl-head" }, lab.headline), " ",
      chip("=", `${told(lab.unchanged)} unchanged`),
      lab.not_compared.map((one) => chip("⋯", `${told(one.total)} ${one.words}`, "dashed")))];
    lab.notes.forEach((note) => parts.push(make("div", { class: "rbwl-small" },
      glyph("▲", { class: "rbw-sign" }), ` ${note}`)));
    lab.not_compared.filter((one) => one.words.startsWith("cannot")).forEach((one) =>
      parts.push(make("div", { class: "rbwl-small rbw-dim" }, `${told(one.total)}: ${one.why}`)));
    parts.push(table("Verdicts", "", [["verdict"], [lab.before, true], ["draft", true], ["change", true]],
      lab.counts.map(({ word: value, old, new: now }) => [verdict(value), told(old), told(now),
        old === now ? dim("0") : make("strong", {}, signed(now - old))])));
    if (lab.histogram) parts.push(bars(lab.histogram));
    if (lab.flips.length) parts.push(changes());
    const idle = lab.rules.map((rule, n) => [rule, lab.first + n + 1]).filter(([rule]) => rule.silent);
    if (idle.length) {
      parts.push(table("Never fired", "", [["rule"], ["why"]], idle.map(([rule, number]) =>
        [String(number), rule.silent.replace("never fired: ", "")])));
    }
    if (lab.near.length && lab.histogram) {
      parts.push(table("On the edge", `nearest to the limit of ${lab.histogram.key}`,
        [["subject"], [lab.histogram.key, true], ["distance"], ["draft"]],
        lab.near.map((one) => [data(one.subject), data(one.value), one.distance,
          one.branch === null ? dim(one.why) : verdict(one.branch)])));
    }
    result.replaceChildren(...parts);
  };

  // --- the bar ----------------------------------------------------------------------------------

  const out = make("textarea", { class: "rbwl-out rbw-data", readonly: true, hidden: true,
    "aria-label": "Rules as text", rows: 12 });
  const copy = (form, name) => act(async () => {
    if (!await settled()) return;
    const answer = await ask("text", { form });
    if (!answer) return;
    out.value = answer.text;
    try {
      await navigator.clipboard.writeText(answer.text);
      out.hidden = true;
      say(`Copied as ${name}`);
      flash(`Copied as ${name}`);
    } catch {
      out.hidden = false;
      out.focus();
      out.select();
      say(`Rules as ${name}, to be copied`);
    }
  });
  const status = make("span", { class: "rbwl-small rbw-dim" });
  const flash = (text) => { status.textContent = text; };
  const button = (text, on, has = {}) =>
    make("button", { type: "button", class: "rbw-btn", ...has, on: { click: on } }, text);
  const reset = button("Reset", act(() => { out.hidden = true; return change({ what: "reset" }); }));
  const keep = button("", act(async () => {
    if (!await settled()) return;
    const answer = await ask("keep", { version: lab.next });
    if (answer) {
      const text = `Kept as ${answer.title}${answer.path ? ` in ${answer.path}` : ""}`;
      flash(text);
      say(text);
    }
  }), { class: "rbw-btn rbw-main" });
  const title = make("span", { style: "flex:1 1 240px" });
  head.append(title, status, reset,
    button("Copy as Python", copy("python", "Python")), button("Copy as YAML", copy("yaml", "YAML")), keep);

  const show = () => {
    title.replaceChildren(make("strong", { style: "font-size:14px;margin-right:6px" }, "Rule lab"), " ", data(`${lab.title} ${lab.before} → draft`),
      " ", make("span", { class: "rbw-dim rbwl-small" }, `judges ${told(lab.judged)} recorded subjects, calls no tool`));
    reset.disabled = !lab.is_changed && !lab.not_applied;
    keep.textContent = `Keep as ${lab.next}`;
    keep.disabled = !lab.can_keep;
    keys.replaceChildren(...lab.keys.map((key) => make("option", { value: key })));
    const held = document.activeElement;
    const wanted = lab.rules.map((rule, n) => box(rule, lab.first + n + 1));
    const ids = new Set(lab.rules.map((rule) => rule.id));
    for (const [id, { at }] of boxes) {
      if (!ids.has(id)) {
        at.remove();
        boxes.delete(id);
      }
    }
    wanted.forEach((at, n) => {
      if (form.children[n] !== at) form.insertBefore(at, form.children[n] ?? null);
    });
    around();
    cut.hidden = !(lab.more || lab.first);
    cut.replaceChildren(...(lab.more || lab.first ? [dim(`rules ${told(lab.first + 1)} to ${
      told(lab.first + lab.rules.length)} of ${told(lab.total)}`),
    lab.first ? turn("rules before", Math.max(lab.first - lab.page, 0)) : "",
    lab.more ? turn("rules after", lab.first + lab.rules.length) : ""] : []));
    if (held && held !== document.activeElement && held.isConnected && form.contains(held)) held.focus();
    results();
  };

  const anew = () => {
    lab = model.get("told");
    const grip = document.activeElement?.dataset?.field === "grip" && document.activeElement.closest(".rbwl-rule");
    show();
    if (grip && grip.isConnected) grip.querySelector("[data-field=grip]")?.focus();
    say(`${lab.headline}, ${lab.unchanged} unchanged${
      lab.not_applied ? `; ${lab.not_applied} not applied` : ""}`);
  };

  form.append(cut, ...ends.map(({ at }) => at), grounds, more, keys);
  root.append(head, out, make("div", { class: "rbwl-panes" }, form, result));
  show();
  model.on("change:told", anew);
  return () => {
    model.off("change:told", anew);
    done();
  };
};

export default { render };
