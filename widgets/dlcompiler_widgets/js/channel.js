/*
 * Requests to Python and their answers. A page that has no kernel gives a `model` of its own.
 */

/** A request that has waited so long is taken for lost, and the next one is sent. */
const LOST_AFTER_MS = 30_000;
/** Of these only the newest matters: one that still waits gives way to the next. */
const REPLACED = ["choose", "preview"];

/**
 * One request at a time: a host may merge two changes of a trait into one, and would lose the first
 * of two quick clicks. The next request is sent when the one before it is answered.
 */
export class Channel {
  constructor(model) {
    this.model = model;
    this.queue = [];
    this.waiting = null;
    this.id = Math.random().toString(36).slice(2, 8);
    this.sent = 0;
    this.started = new Map();
  }

  /** Ask for something; returns the number of the request. */
  send(op, args = {}) {
    this.sent += 1;
    const id = `${this.id}-${this.sent}`;
    this.started.set(id, performance.now());
    if (REPLACED.includes(op)) this.queue = this.queue.filter((intent) => intent.op !== op);
    this.queue.push({ id, op, args });
    if (!this.waiting || performance.now() - this.postedAt > LOST_AFTER_MS) this.post();
    return id;
  }

  /** From now on, ask by another model; what waits for its answer is asked again, with its id. */
  moveTo(model) {
    this.model = model;
    if (this.waiting) this.put(this.posted);
  }

  post() {
    const intent = this.queue.shift();
    this.waiting = intent?.id ?? null;
    if (intent) this.put(intent);
  }

  put(intent) {
    this.posted = intent;
    this.postedAt = performance.now();
    this.model.set("intent", intent);
    this.model.save_changes();
  }

  /** Forget what was not answered: there is nobody who could. */
  clear() {
    this.queue = [];
    this.waiting = null;
  }

  /** Whether an answer is to a request of this view that a later one has overtaken. */
  isStale(reply) {
    const [id, number] = String(reply ?? "").split("-");
    return id === this.id && Number(number) < this.sent;
  }

  /** Note what has come, and tell whether it answers a request: what a thread pushes does not. */
  note({ id, last }) {
    const mine = [id, last].find((each) => this.started.has(each));
    if (mine) this.answered = mine;
    if (this.waiting && [id, last].includes(this.waiting)) {
      this.waiting = null;
      queueMicrotask(() => !this.waiting && this.post());
    }
    return Boolean(mine);
  }

  /** The newest answer to a request of this view, once; null if there is none, or it is stale. */
  takeAnswer() {
    const reply = this.answered;
    this.answered = null;
    return reply && !this.isStale(reply) ? reply : null;
  }

  /** The time since a request of this view was sent, in ms; null for answers to others. */
  latency(reply) {
    if (!this.started.has(reply)) return null;
    const latency = performance.now() - this.started.get(reply);
    this.started.clear();
    return latency;
  }
}

const HELLO_AFTER_MS = 1200;

/** Whether a model was restored from a state that a notebook stores: it has no way to Python. */
export const hasNoKernel = (model) => model?.comm_live === false;

/**
 * The way for Cancel: a model of its own, which is served while a cell is busy once it has been
 * answered. Where the host has no other models, the request goes the usual way. A page that was
 * drawn from a state stored in a notebook has nobody to talk to: `onLost` is called.
 */
export class Control {
  constructor(model, signal, onLost) {
    const id = model.get("control");
    const timer = setTimeout(async () => {
      const own = await model.widget_manager?.get_model?.(id);
      if (hasNoKernel(own)) return onLost();
      this.model = own;
      this.bump("hello");
    }, HELLO_AFTER_MS);
    signal?.addEventListener("abort", () => clearTimeout(timer));
  }

  bump(name) {
    this.model?.set(name, this.model.get(name) + 1);
    this.model?.save_changes();
  }

  /** Whether a request to cancel was sent. */
  cancel() {
    this.bump("asked");
    return Boolean(this.model);
  }
}
