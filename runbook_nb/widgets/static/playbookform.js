// The form of a playbook: its steps, what is asked of a person now, who and a note, its buttons.

let forms = 0;

const render = ({ model, el }) => {
  const { root, say, ask, act, settle, done } = frame(el, model, `Playbook ${model.get("title")}`);
  root.classList.add("rbf", "rbp");
  const mine = `rbp-${(forms += 1)}`;
  let began = false;

  const head = make("div", { class: "rbf-head" });
  const steps = make("ol", { class: "rbp-steps", "aria-label": "steps" });
  const asked = make("div", { class: "rbp-asked" });
  const field = (name, input, word) => {
    const problem = make("div", { class: "rbf-problem", id: `${mine}-${name}-problem` });
    const label = make("label", { for: `${mine}-${name}`, class: "rbf-label" }, word,
      name === "who" ? make("span", { class: "rbf-req" }, " required") : null);
    return { input, problem, box: make("div", { class: "rbf-field" }, label, input, problem) };
  };
  const who = field("who", make("input", { id: `${mine}-who`, class: "rbw-in rbf-in", type: "text",
    autocomplete: "off", spellcheck: "false", "aria-required": "true",
    "aria-describedby": `${mine}-who-problem` }), "Who");
  const note = field("note", make("textarea", { id: `${mine}-note`, class: "rbw-in rbf-in rbf-area",
    rows: "3" }), "Note");
  const button = make("button", { type: "submit", class: "rbw-btn rbw-main" });
  const other = make("button", { type: "button", class: "rbw-btn" });
  const said = make("div", { class: "rbf-said" });
  const fields = make("div", { class: "rbp-fields" }, who.box, note.box);
  const form = make("form", { class: "rbf-form", novalidate: true }, asked, fields,
    make("div", { class: "rbf-row" }, button, other, said));
  root.append(head, steps, form);

  const drawHead = () => head.replaceChildren(
    make("strong", { class: "rbw-data rbf-title" }, model.get("title")), " ",
    make("span", { class: "rbw-dim" }, model.get("about")));
  const drawSteps = () => steps.replaceChildren(...model.get("steps").map((step) => {
    const [word, , sign] = step.status;
    return make("li", { class: `rbp-step${step.here ? " rbp-here" : ""}`,
      "aria-current": step.here ? "step" : null },
      make("span", { class: "rbp-place rbw-dim" }, String(step.place)),
      make("span", { class: "rbw-data" }, step.name),
      make("span", { class: "rbp-status" }, sign ? glyph(sign) : null, ` ${word}`),
      step.optional ? make("span", { class: "rbw-dim" }, "optional") : null);
  }));
  const drawAsked = () => {
    const asks = model.get("asks");
    asked.replaceChildren(
      asks.kind ? make("div", { class: "rbp-what" }, make("strong", { class: "rbw-data" }, asks.step),
        " ", make("span", {}, asks.about)) : make("div", { class: "rbw-dim" }, asks.about),
      ...asks.lines.map((line) => make("div", { class: "rbf-about rbw-dim" }, line)));
    fields.hidden = button.hidden = !asks.kind;
    button.textContent = asks.verb || "";
    other.hidden = !asks.other;
    other.textContent = asks.other || "";
  };
  const drawWho = () => {
    if (document.activeElement !== who.input) who.input.value = model.get("who");
  };
  const drawFaults = () => {
    const fault = model.get("faults").who;
    who.problem.replaceChildren(...(fault ? [glyph("▲", { class: "rbw-sign" }), ` ${fault}`] : []));
    if (fault) who.input.setAttribute("aria-invalid", "true");
    else who.input.removeAttribute("aria-invalid");
  };
  const drawSaid = () => {
    const text = model.get("said");
    said.replaceChildren(...(text ? [glyph("✓", { class: "rbf-sign" }), ` ${text}`] : []));
    if (began && text) say(text);
  };

  who.input.addEventListener("change", () => {
    model.set("who", who.input.value);
    model.save_changes();
  });
  const handIn = (decline) => act(async (event) => {
    event.preventDefault();
    if (button.hidden || button.disabled) return;
    button.disabled = other.disabled = true;
    const about = { step: model.get("asks").step, who: who.input.value, note: note.input.value };
    const answer = await ask("hand_in", decline ? { ...about, decline } : about);
    button.disabled = other.disabled = false;
    if (!answer) return;
    if (answer.done) note.input.value = "";
    (answer.done && !button.hidden ? note : who).input.focus();
  });
  form.addEventListener("submit", handIn(false));
  other.addEventListener("click", handIn(true));
  form.addEventListener("keydown", (event) => {
    breakLine(event);
    if (event.key === "Enter" && event.target === who.input) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  const heardOf = {
    "change:title change:about": drawHead,
    "change:steps": drawSteps,
    "change:asks": drawAsked,
    "change:who": drawWho,
    "change:faults": drawFaults,
    "change:said": drawSaid,
    "change:steps change:who": settle,
  };
  for (const [events, draw] of Object.entries(heardOf)) {
    for (const event of events.split(" ")) model.on(event, draw);
  }
  for (const draw of [drawHead, drawSteps, drawAsked, drawWho, drawFaults, drawSaid]) draw();
  began = true;
  return () => {
    for (const [events, draw] of Object.entries(heardOf)) {
      for (const event of events.split(" ")) model.off(event, draw);
    }
    done();
  };
};

export default { render };
