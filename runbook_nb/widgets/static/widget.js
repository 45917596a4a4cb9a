// What every widget stands on. Joined before the widget's own file, so nothing here is exported.
// Data is written as text and never as markup.

const make = (tag, has = {}, ...inside) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(has)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    } else {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...inside.flat().filter((one) => one !== null && one !== undefined));
  return made;
};

// A glyph in front of a word; a reader of the screen hears only the word.
const glyph = (sign, has = {}) => make("span", { "aria-hidden": "true", ...has }, sign);

// Numbers as people read them, with thin separators.
const told = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");

const PATIENCE = 2000;
const SETTLED = 500;
let questions = 0;

// Make the root of a widget in `el`. Gives: `root`, to be filled; `say(text)`, heard by a reader of
// the screen; `fail(fault)` and `fine()`, which show and take back what went wrong; `ask(what,
// about)`, which promises the kernel's answer, or null once the fault has been shown; `act(call)`,
// which makes a handler whose faults are shown; `settle()`, after a change by hand; and `done()`,
// for when the view goes away.
const frame = (el, model, name) => {
  const live = make("div", { class: "rbw-live", "aria-live": "polite" });
  const alert = make("div", { class: "rbw-fault", role: "alert", hidden: true });
  const root = make("div", {
    class: "rbnb rbw",
    role: "group",
    "aria-label": name,
    lang: "en",
    // The notebook's own keys (a adds a cell, d d deletes one) are not for us.
    "data-lm-suppress-shortcuts": "true",
    // Keys of the notebook that are bound to whatever has the focus look no further than that.
    on: { focusin: (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true") },
  });
  const outer = make("div", { class: "rbw-outer" }, root);
  root.append(alert, live);
  el.append(outer);

  const mine = Math.random().toString(36).slice(2);
  const open = new Map();

  const show = (sign, ...words) => {
    alert.replaceChildren(glyph(sign, { class: "rbw-sign" }), ...words);
    alert.hidden = false;
  };
  const fail = (fault) => {
    const what = fault.what ?? String(fault);
    show("▲", " ", make("strong", {}, what), fault.fix ? `; ${fault.fix}` : "");
  };
  const fine = () => {
    alert.hidden = true;
    alert.replaceChildren();
  };
  const say = (text) => {
    if (live.textContent !== text) live.textContent = text;
  };
  const act = (call) => async (event) => {
    try {
      await call(event);
    } catch (error) {
      fail({ what: String(error) });
    }
  };
  const ask = (what, about = {}) =>
    new Promise((answered) => {
      const id = `${mine}-${(questions += 1)}`;
      const late = setTimeout(
        () => show("⋯", " the kernel has not answered yet: it is busy, or it was started anew; ",
          "then run the cell again"),
        PATIENCE,
      );
      open.set(id, { answered, late });
      model.send({ ask: what, id, about });
    });
  const heard = (message) => {
    const asked = message && open.get(message.id);
    if (!asked) return;
    open.delete(message.id);
    clearTimeout(asked.late);
    if (message.fault) {
      fail(message.fault);
      asked.answered(null);
    } else {
      if (!open.size) fine();
      asked.answered(message.answer);
    }
  };
  const faulted = () => {
    const fault = model.get("fault");
    if (fault && fault.what) fail(fault);
    else fine();
  };
  model.on("msg:custom", heard);
  model.on("change:fault", faulted);

  // The static view is an output before this one: of the same cell, and with the same mark. Beside
  // a widget that works it would say everything twice. A page of what was saved has no kernel.
  const gone = () => model.get("layout")?.comm_live === false;
  const alone = () => {
    const mark = model.get("_mark");
    if (!mark || gone()) return;
    for (let box = el.parentElement; box; box = box.parentElement) {
      let still = [...box.getElementsByClassName(mark)]
        .filter((one) => one.compareDocumentPosition(el) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
      while (still && still.parentElement !== box) still = still.parentElement;
      if (still) still.style.display = "none";
      if (still || box.matches(".jp-OutputArea, .cell_container")) return;
    }
  };
  // Called once it is in the page, and when an output may have been drawn anew.
  const seen = new ResizeObserver(alone);
  seen.observe(outer);
  // What is changed by hand is in the static view too, once there is a pause.
  let pause = 0;
  const settle = () => {
    clearTimeout(pause);
    pause = setTimeout(() => gone() || model.send({ ask: "settle", about: {} }), SETTLED);
  };
  const done = () => {
    seen.disconnect();
    clearTimeout(pause);
    model.off("msg:custom", heard);
    model.off("change:fault", faulted);
    for (const { late } of open.values()) clearTimeout(late);
    open.clear();
  };
  return { root, say, fail, fine, ask, act, settle, done };
};

// A notebook takes Enter for itself; in a field of several lines it begins a line.
const breakLine = (event) => {
  const plain = event.key === "Enter" && !(event.ctrlKey || event.metaKey || event.shiftKey);
  if (plain && event.target.tagName === "TEXTAREA") event.stopPropagation();
};
