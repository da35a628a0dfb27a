/*
 * The workbench without a kernel: a model that answers from a recording.
 *
 * The recording has what each pane shows in each state that was visited; what is not in it needs a
 * kernel, and says so.
 */

import { button, h } from "./dom.js";
import { RecordedModel, info, play } from "./recorded-model.js";
import { main } from "./workbench.js";

const HINT = ["hint", "open it in a notebook: export it as JSON or as a link here, then "
  + "Explorer.from_json(…) or Explorer.from_link(…)"];
const refused = (text) => ({ text: `${text}: needs a kernel`, tone: "error", details: [HINT] });

export class Recording extends RecordedModel {
  constructor(data, panes) {
    super(data, {
      layout_of_panes: { panes, visible: data.visible }, preview: {}, last_latency_ms: 0, control: "",
      status: info("This is a recording: go to any state, choose loops, open tabs."),
    });
    this.tabs = { ...data.tabs };
    this.pass = "";
    this.phase = "";
    this.redoTo = { ...data.redo };
    this.compared = {};
    this.exported = null;
    this.arrive(data.here);
    this.show(null);
  }

  // -- what is asked ---------------------------------------------------------------------------

  answer({ id, op, args }) {
    const status = Object.hasOwn(ACTIONS, op) ? ACTIONS[op](this, args) : refused(op);
    this.traits.status = status;
    this.show(id);
    this.notify();
  }

  get state() {
    return this.data.states[this.here];
  }

  children() {
    return Object.entries(this.data.states).filter(([, state]) => state.parent === this.here);
  }

  /** Where redo leads: to where one was last, or to the only state that follows. */
  next() {
    const only = this.children();
    return this.redoTo[this.here] ?? (only.length === 1 ? only[0][0] : null);
  }

  arrive(id) {
    for (let at = id; this.data.states[at].parent; at = this.data.states[at].parent) {
      this.redoTo[this.data.states[at].parent] = at;
    }
    this.here = id;
    const { loops = [], chosen } = this.state;
    this.chosen = [this.chosen, `${this.chosen}.inner`].find((key) => loops.includes(key)) ?? chosen;
    this.exported = null;
  }

  /** What a pane shows, or undefined where that was not recorded. */
  recorded(id, pane, tab, chosen) {
    const shown = this.data.states[id].shown[pane]?.[tab];
    return this.data.values[shown?.[chosen] ?? shown?.[""]];
  }

  // -- what is shown ---------------------------------------------------------------------------

  show(id) {
    for (const pane of this.traits.layout_of_panes.visible) {
      this.traits[pane] = (this[`show_${pane}`] ?? this.showPane).call(this, pane);
    }
    this.traits.chosen = this.chosen;
    this.seq += 1;
    this.traits.reply = { seq: this.seq, id };
  }

  showPane(pane) {
    const tab = this.tabs[pane] ?? "";
    const part = { text: this.pass, picture: this.phase }[pane] ?? "";
    const open = part === "" ? null : this.recorded(this.here, pane, `${tab} ${part}`, "");
    return open ?? this.recorded(this.here, pane, tab, this.chosen) ?? this.missing(pane, tab);
  }

  /** In place of what was not recorded: why there is nothing; of a pane with tabs, its tabs. */
  missing(pane, tab) {
    const error = refused("this was not recorded");
    const known = pane in this.tabs && this.data.values.find((value) =>
      value?.tab && value.tabs?.some(({ name }) => name === tab));
    if (!known) return { unavailable: error };
    return { ...known, tab, kind: "off", model: null, lines: [], left_out: 0, note: "", error };
  }

  show_bar(pane) {
    const following = this.next();
    return {
      ...this.showPane(pane), layout: null, targets: null, predicting: false,
      not_predicting: "Predict first is off in a recording: it asks before a step is applied, and needs a kernel.",
      undo: this.state.parent ? this.state.title : null,
      redo: following ? this.data.states[following].title : null,
    };
  }

  show_history() {
    const path = new Set();
    for (let at = this.here; at; at = this.data.states[at].parent) path.add(at);
    const rows = this.data.history.rows.map((row) => ({
      ...row, is_here: row.id === this.here, is_on_path: path.has(row.id),
      label: row.id === this.here ? `${row.label}, current state` : row.label,
    }));
    return { ...this.data.history, rows, compared: this.compared };
  }

  show_compare() {
    const { a, b } = this.compared;
    return a && b ? this.recorded(a, "compare", b, "") : {};
  }

  show_editor() {
    return {};
  }

  /** A branch has one ladder; which state is the current one is not recorded. */
  show_ladder(pane) {
    const shown = this.showPane(pane);
    const mark = (row) => (row.id === this.here
      ? { ...row, is_here: true, label: `${row.label}; current state` } : row);
    return shown.rows ? { ...shown, rows: shown.rows.map(mark) } : shown;
  }

  show_predict() {
    return {};
  }

  show_export() {
    return this.exported ?? {};
  }
}

const canonical = (value) => JSON.stringify(value, (_, inner) =>
  (inner && typeof inner === "object" && !Array.isArray(inner)
    ? Object.fromEntries(Object.entries(inner).sort()) : inner));

function go(recording, id, text) {
  if (!id) return refused(text);
  recording.arrive(id);
  return info(`Now at: ${recording.state.name}.`);
}

const ACTIONS = {
  undo: (recording) => go(recording, recording.state.parent, "no earlier state"),
  redo: (recording) => go(recording, recording.next(), "no later state"),
  jump: (recording, { id }) =>
    go(recording, Object.hasOwn(recording.data.states, id) ? id : null, "no such state"),

  /** A step that was taken here leads to the state that it led to. */
  apply(recording, { step }) {
    const found = recording.children().find(([, state]) => canonical(state.step) === canonical(step));
    return go(recording, found?.[0], `${step.primitive} ${step.stage}`);
  },

  /** What a move would do is not recorded; what the palette says of it is. */
  preview: (recording) => recording.traits.status,

  choose(recording, { key }) {
    recording.chosen = key;
    return info(recording.traits.tree?.rows?.find((row) => row.key === key)?.label ?? key);
  },

  /** Phases that a loop repeats were recorded once. */
  block(recording, { phase }) {
    if (phase === undefined || !recording.recorded(recording.here, "picture", `block ${phase}`, "")) {
      return refused("this phase, buffer or block");
    }
    recording.phase = phase;
    return info("Shown: the elements that the threads of a block touch.");
  },

  /** A pass that changed nothing was not recorded: the program is that behind the one before. */
  pass(recording, { name }) {
    if (!recording.recorded(recording.here, "text", `passes ${name}`, "")) {
      return refused(`the pass ${name}`);
    }
    recording.pass = name;
    return info(`Shown: the program after ${name}.`);
  },

  picture: (recording, { tab }) => open(recording, "picture", tab),
  text: (recording, { tab }) => open(recording, "text", tab),

  compare(recording, args) {
    const compared = Object.keys(args).length ? { ...recording.compared, ...args } : {};
    const { a, b } = compared;
    if (a && b && !recording.recorded(a, "compare", b, "")) {
      return refused(a === b ? "a state with itself" : "this comparison was not recorded");
    }
    recording.compared = compared;
    const letter = a ? "B" : "A";
    return info(a && b ? "Compared: A with B." : a || b ? `Choose ${letter} next.` : "Closed.");
  },

  export(recording, { kind }) {
    const shown = kind ? recording.recorded(recording.here, "export", kind, "") : null;
    if (kind && !shown) {
      const error = refused(`export ${kind}`);
      recording.exported = recording.exported
        ? { ...recording.exported, kind, state: "failed", error, note: "" } : null;
      return error;
    }
    recording.exported = shown ? { ...shown } : null;
    return info(kind ? "Copy it, or download it as a file." : "Closed.");
  },
};

function open(recording, pane, tab) {
  recording.tabs[pane] = tab;
  const title = recording.showPane(pane).tabs?.find(({ name }) => name === tab)?.text;
  return info(`Shown: ${title ?? tab}.`);
}

/** Buttons, and the keys "," and ".", that go through the states in the order of the visits. */
class Visits {
  constructor(recording) {
    this.recording = recording;
    this.words = h("span", { class: "dlc-visits-words", role: "status" });
    this.root = h("div", { class: "dlc-visits", role: "toolbar", "aria-label": "Visited states" });
    recording.on("change:reply", () => this.draw());
    document.addEventListener("keydown", (event) => this.press(event));
    this.draw();
  }

  get at() {
    return this.recording.data.order.indexOf(this.recording.here);
  }

  draw() {
    const { order } = this.recording.data, key = document.activeElement?.dataset.key;
    const isInside = this.root.contains(document.activeElement);
    this.words.textContent = `State ${this.at + 1} of ${order.length}: ${this.recording.state.name}`;
    this.root.replaceChildren(
      button("visit before", "◀ Previous", "The state that was visited before (,)",
        () => this.go(-1), this.at <= 0),
      this.words,
      button("visit after", "Next ▶", "The state that was visited after (.)",
        () => this.go(1), this.at >= order.length - 1));
    if (isInside) this.root.querySelector(`[data-key="${key}"]`)?.focus();
  }

  go(by) {
    const id = this.recording.data.order[this.at + by];
    if (id) this.recording.answer({ id: null, op: "jump", args: { id } });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
    const by = { ",": -1, ".": 1 }[event.key];
    if (by) this.go(by);
  }
}

play(({ panes, ...data }, el) => {
  const recording = new Recording(data, panes);
  main.render({ model: recording, el });
  el.firstElementChild.prepend(new Visits(recording).root);
});
