/*
 * The fusion view without a kernel: a model that answers from a recording.
 */

import { main } from "./graph.js";
import { RecordedModel, info, play } from "./recorded-model.js";

const REFUSED = { text: "This is not in the recording: it needs a kernel.", tone: "error",
  details: [["hint", "run the notebook that made this page"]] };

class Recording extends RecordedModel {
  constructor(data) {
    super(data, { opened: "", control: "",
      status: info("This is a recording: point at an arrow to read its verdict.") });
    this.state = { wishes: 0, at: "", level: "", key: "" };
    this.show(this.state, null);
  }

  answer({ id, op, args }) {
    const next = this.after(op, args);
    const isKnown = next && this.show(next, id);
    this.traits.status = isKnown ? info(this.words()) : REFUSED;
    if (!isKnown) this.reply(id);
    this.notify();
  }

  /** The state that an action leads to; null if only a kernel knows. */
  after(op, args) {
    const now = this.state;
    const same = { ...now, level: now.level || this.traits.picture.level };
    if (op === "level") return { ...now, level: args.level, key: "" };
    // One box is open at a time: a recording of all choices would be very large.
    if (op === "turn") return { ...same, key: same.key === args.key ? "" : args.key };
    if (op === "pass") return { ...now, at: args.number === this.data.passes ? "" : args.number, level: "", key: "" };
    const way = op === "reset" ? "reset" : op === "wish" ? `${args.verdict} ${args.kind}` : null;
    const wishes = this.data.wishes[now.wishes][way];
    return wishes === undefined ? null : { ...now, wishes, key: "" };
  }

  show(state, id) {
    const { wishes, at, level, key } = state;
    const found = this.data.states[`${wishes}|${at}|${level}|${key}`];
    if (!found) return false;
    this.state = state;
    for (const [part, place] of Object.entries(found)) this.traits[part] = this.data.values[place];
    this.reply(id);
    return true;
  }

  reply(id) {
    this.seq += 1;
    this.traits.reply = { seq: this.seq, id, last: id };
  }

  words() {
    const { at } = this.state, { steps } = this.traits.passes;
    if (at === "") return "The graph after all passes.";
    return at === 0 ? "The graph as it was given." : `The graph after ${steps[at - 1].name}.`;
  }
}

play((data, el) => main.render({ model: new Recording(data), el }));
