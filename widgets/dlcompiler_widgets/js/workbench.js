/*
 * The workbench in the browser: draws the view models that arrive, and sends what the user wants.
 *
 * Nothing is decided here. Each pane shows one trait of the model and is rebuilt only when that
 * changes; `layout_of_panes` says which there are: all for the Explorer, one for a pane on its own.
 */

import { AdvicePane } from "./advice.js";
import { BarPane } from "./bar.js";
import { Page } from "./board.js";
import { Control } from "./channel.js";
import { Columns, plainHead } from "./columns.js";
import { ComparePane } from "./compare.js";
import { h, message } from "./dom.js";
import { ExportPane } from "./export.js";
import { HelpDialog } from "./help.js";
import { HistoryPane } from "./history.js";
import { LadderPane } from "./ladder.js";
import { applyLayout } from "./levels.js";
import { MovesPane } from "./moves.js";
import { Notice } from "./notice.js";
import { PicturePane } from "./picture.js";
import { Memory } from "./remembered.js";
import { PredictPane } from "./predict.js";
import { TextPane } from "./text.js";
import { TreePane } from "./tree.js";
import { WritePane } from "./write.js";

const PANES = {
  bar: BarPane, tree: TreePane, picture: PicturePane, text: TextPane, moves: MovesPane,
  history: HistoryPane, advice: AdvicePane, compare: ComparePane, export: ExportPane,
  editor: WritePane, ladder: LadderPane, predict: PredictPane,
};
const KEYS = [
  ["↑ ↓ ← → Home End, letters", "move in the loop nest, in the history and in the ladder"],
  ["Enter", "from a loop to its moves; from a state, or its bar in the ladder: go there"],
  ["n, a, b", "on a state: name and note; compare it, as A or as B"],
  ["Alt+↑ ↓", "on a loop: move it outward, inward"],
  ["Enter, n", "on a line of a text: choose its loop; go to the next line of the chosen loop"],
  ["Alt+↓, Esc", "on a move: into the box beside it; close the box, then back to the loop"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["Tab", "to the next part"],
  ["← →", "on a tab: to the next one"],
  ["Ctrl+Enter, Esc", "in the expression that you write: apply it; close"],
  ["arrows, Home, End, Enter", "on a line between panes: move it; Enter brings it back"],
  ["+ − 0, arrows, Ctrl+wheel", "on a picture: larger, smaller, fit; move it"],
  [", .", "on a replay page: to the state that was visited before, after"],
  ["?", "this list; Esc closes it"],
];
const isTyping = (event) => ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);

class Workbench extends Page {
  constructor(model, host, signal) {
    super(model);
    this.control = new Control(model, signal, () => this.lose());
    this.memory = new Memory();
    this.drawn = {};
    this.received = {};
    const { panes: places } = model.get("layout_of_panes");
    const names = Object.keys(places);
    this.panes = Object.fromEntries(names.map((name) => [name, new PANES[name](this)]));
    const rootsOf = (place) => names.filter((name) => places[name] === place)
      .map((name) => this.panes[name].root);
    this.status = h("div", { class: "dlc-status", role: "status", "aria-live": "polite" });
    this.grid = h("div", { class: "dlc-grid" });
    const inGrid = names.filter((name) => places[name] === "grid"), isSingle = inGrid.length === 1;
    this.root = h("div",
      { class: `dlc-explorer${isSingle ? " dlc-single" : ""}`, "data-latency-ms": "" },
      this.panes.bar?.root, h("div", { class: "dlc-drawer" },
        h("div", {}, ...rootsOf("above").filter((each) => each !== this.panes.bar?.root))),
      this.grid, this.status, ...rootsOf("below"));
    this.notice = new Notice(this.root, this.status);
    this.keys = new HelpDialog(KEYS);
    this.root.append(this.keys.root);
    this.root.addEventListener("keydown", (event) => this.shortcut(event));
    this.root.addEventListener("fullscreenchange", () => this.panes.bar?.nameScreen());
    if (isSingle) {
      const [name] = inGrid;
      this.grid.append(this.panes[name].root);
      plainHead(this.panes[name], name);
    } else {
      this.columns = new Columns(this.root, this.grid,
        Object.fromEntries(inGrid.map((name) => [name, this.panes[name]])),
        { memory: this.memory, opened: () => this.mark(this.chosen) });
    }
    host.append(this.root);
    const update = () => this.redraw();
    model.on("change:reply", update);
    // Contents that no host may save come as messages; a new view asks for the last ones.
    const receive = (message) => this.receive(message);
    model.on("msg:custom", receive);
    signal?.addEventListener("abort", () => {
      if (this.isLive) model.send?.({ view: "closed" }); // what nobody sees is not computed
      model.off("change:reply", update);
      model.off("msg:custom", receive);
    });
    // A host says this when a kernel is restarted, and nothing when all is well.
    model.on("comm_live_update", () => this.lose());
    this.draw();
    model.send?.({ view: "opened" }); // asks for private contents, too
  }

  // -- what panes ask for ----------------------------------------------------------------------

  /** End what runs beside the notebook; also while a cell is busy. */
  cancel() {
    if (!this.control.cancel()) this.send("cancel");
  }

  /**
   * Ask for something that changes nothing: the page does not look busy. Not while a request waits:
   * a host may hold that back, and then sends only the newest value of a trait.
   */
  ask(op, args) {
    if (this.root.hasAttribute("aria-busy")) return null;
    this.lastAsked = this.channel.send(op, args);
    return this.lastAsked;
  }

  /** Mark in the tree what a move is about, and there and in the picture what stands in its way. */
  flag(keys, conflicts) {
    this.panes.tree?.flag(keys, conflicts);
    this.panes.picture?.flag(conflicts);
  }

  choose(key) {
    if (key === this.chosen || !key) return;
    this.mark(key);
    this.send("choose", { key });
  }

  say(status) {
    this.drawn.status = null;
    this.status.replaceChildren(message(status));
    this.notice.say(status);
  }

  /** Let the workbench fill the screen, or bring it back into the notebook. */
  maximise() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen().catch(() => this.say({ tone: "error", details: [],
      text: "The browser does not let this page fill the screen." }));
  }

  help() {
    this.keys.open();
  }

  isLoop(key) {
    return this.panes.tree ? this.panes.tree.rows.get(key)?.type === "loop" : key.includes("/");
  }

  /** The id of the state that made a loop. */
  madeBy(key) {
    return this.panes.tree?.rows.get(key)?.made_by_state || null;
  }

  focusTree() {
    this.columns?.open("tree");
    this.panes.tree?.home()?.focus();
  }

  focusMoves() {
    this.columns?.open("moves");
    this.panes.moves?.home()?.focus();
  }

  // -- drawing ---------------------------------------------------------------------------------

  /**
   * Draw an answer that somebody waits for as soon as the host has set all traits, which marimo does
   * one by one; what a thread pushes is drawn in the next frame, however much arrived.
   */
  redraw() {
    if (this.channel.note(this.model.get("reply"))) queueMicrotask(() => this.drawNewest());
    else {
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.drawNewest();
      });
    }
  }

  drawNewest() {
    const { seq, id } = this.model.get("reply");
    if (seq <= this.lastSeq || this.channel.isStale(id)) return;
    this.lastSeq = seq;
    this.isLive = true;
    this.draw();
    this.root.offsetHeight; // the layout is part of what the user waits for
    this.measure(this.channel.takeAnswer());
  }

  measure(id) {
    const latency = this.channel.latency(id);
    if (latency === null) return;
    this.root.dataset.latencyMs = latency.toFixed(1);
    this.root.dataset.reply = id;
    this.root.removeAttribute("aria-busy");
    this.model.set("last_latency_ms", latency);
    this.model.save_changes();
  }

  draw() {
    const focus = this.focusPlace();
    const layout = this.model.get("layout_of_panes");
    // A browser that removes what has the focus computes the layout, which is known as yet.
    if (focus && focus.pane === this.panes.moves && this.isChanged("moves")) focus.active.blur();
    if (applyLayout(this.panes, this.grid, layout)) this.columns?.arrange();
    // The tree first: other panes ask it what a key is. The picture last: to fit, it needs the
    // layout, which is then done for all panes at once.
    const others = Object.keys(this.panes).filter((name) => name !== "picture");
    for (const name of ["tree", ...others, "picture"]) {
      const pane = this.panes[name];
      if (!pane || !layout.visible.includes(name) || !this.isChanged(name)) continue;
      this.drawn[name] = this.contents(name);
      this.drawPane(pane, this.drawn[name]);
      this.columns?.count(name, pane.count);
    }
    this.drawStatus();
    this.mark(this.model.get("chosen"));
    const { id } = this.model.get("reply");
    for (const pane of Object.values(this.panes)) pane.preview?.(this.model.get("preview"), id);
    this.restoreFocus(focus);
  }

  contents(name) {
    return this.received[name] ?? this.model.get(name);
  }

  /** Whether a pane has other contents than those on the page: only what changed is sent. */
  isChanged(name) {
    const value = this.contents(name);
    return Boolean(value) && this.drawn[name] !== value;
  }

  receive({ pane, value }) {
    this.received[pane] = value;
    if (!this.panes[pane]) return;
    const focus = this.focusPlace();
    this.drawn[pane] = value;
    this.drawPane(this.panes[pane], value);
    this.restoreFocus(focus);
  }

  /** Draw a pane; in place of contents that a recording does not hold, why there are none. */
  drawPane(pane, value) {
    pane.unavailable?.remove();
    pane.root.classList.toggle("dlc-unavailable", "unavailable" in value);
    if ("unavailable" in value) {
      pane.unavailable = message(value.unavailable);
      pane.root.append(pane.unavailable);
    } else pane.draw(value);
  }

  /** What the page said by itself stays until something is done: a question does not end it. */
  drawStatus() {
    const status = this.model.get("status"), isQuestion = this.model.get("reply").id === this.lastAsked;
    if (this.drawn.status === status || (isQuestion && this.statusBefore === status)) return;
    this.say(status);
    this.drawn.status = this.statusBefore = status;
  }

  /** Show which loop is chosen, in every pane. */
  mark(key) {
    this.chosen = key;
    for (const pane of Object.values(this.panes)) pane.mark?.(key);
  }

  /**
   * Show an instruction of an accelerator in all panes: its line of the text in a state; null shows
   * none.
   */
  point(line, state = null) {
    this.pointed = line === null ? null : { line, state };
    for (const pane of Object.values(this.panes)) pane.pointAt?.(line);
  }

  /** Show the instruction of a line of the text, if a picture of instructions is open. */
  pointFrom(tab, line) {
    const { drawn } = this.panes.picture ?? {};
    if (tab === "source" && drawn?.pointAt) this.point(line, drawn.model.state);
  }

  /** Where the keyboard is: the pane it is in, and the key of the thing. */
  focusPlace() {
    const active = document.activeElement;
    if (!this.root.contains(active)) return null;
    const pane = Object.values(this.panes).find((each) => each.root.contains(active));
    return pane ? { pane, key: active.dataset.key, active } : null;
  }

  restoreFocus(place) {
    if (!place || this.root.contains(place.active)) return;
    if (this.root.contains(document.activeElement)) return; // a pane has moved it
    const same = [...place.pane.root.querySelectorAll("[data-key]")].find(
      (node) => node.dataset.key === place.key && !node.disabled,
    );
    const { tree } = this.panes;
    const own = place.pane === tree ? tree.home() : same ?? place.pane.home?.();
    (own && place.pane !== this.panes.moves ? own : same ?? tree?.home())
      ?.focus({ preventScroll: true });
  }

  /** Ctrl+Z, Ctrl+Shift+Z and ?, except where a text is being edited. */
  shortcut(event) {
    if (isTyping(event)) return;
    if (event.key === "?") {
      event.stopPropagation();
      this.help();
    }
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    event.stopPropagation();
    this.send(event.shiftKey ? "redo" : "undo");
  }
}

export const main = {
  render({ model, el, signal }) {
    new Workbench(model, el, signal);
  },
};

export default main;
