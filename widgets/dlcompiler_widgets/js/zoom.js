/*
 * How large a scene is shown: fitted to its pane, or at a scale that the user chose. Asks nothing of
 * Python.
 */

import { button, h, swallowClick } from "./dom.js";
import { fit } from "./fit.js";

const STEP = 1.25, WHEEL_STEP = 1.1, LEAST = 0.4, MOST = 6;
const DRAG_PX = 4;

export class Zoom {
  /** `body` holds the scene, whichever is drawn at the time. */
  constructor(body) {
    this.body = body;
    this.root = h("div", { class: "dlc-zoom", role: "group", "aria-label": "Zoom" },
      button("zoom out", "−", "Smaller", () => this.to(this.shown() / STEP)),
      button("zoom in", "+", "Larger", () => this.to(this.shown() * STEP)),
      this.fitButton = button("zoom fit", "Fit", "As large as the pane", () => this.to(null)));
    body.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    body.addEventListener("keydown", (event) => this.key(event));
    body.addEventListener("pointerdown", (event) => this.drag(event));
    this.to(null);
    new ResizeObserver(() => this.apply()).observe(body);
  }

  get scene() {
    return this.body.querySelector("svg.dlc-scene");
  }

  /** The scale that is on the page. */
  shown() {
    return this.scale ?? this.scene?.getScreenCTM()?.a ?? 1;
  }

  /** Show scenes at a scale; null fits them to their pane. */
  to(scale) {
    this.scale = scale === null ? null : Math.min(Math.max(scale, LEAST), MOST);
    this.apply();
  }

  /** Bring the scene that is drawn to the scale; another one may have been. */
  apply() {
    const { scene, scale } = this;
    this.body.classList.toggle("dlc-fit", scale === null);
    this.fitButton.setAttribute("aria-pressed", String(scale === null));
    this.root.hidden = !scene;
    if (!scene) return;
    fit(this.body, scene);
    const { width, height } = scene.viewBox.baseVal;
    scene.setAttribute("width", width * (scale ?? 1));
    scene.setAttribute("height", height * (scale ?? 1));
  }

  /** Ctrl and the wheel: the point under the pointer stays where it is. */
  wheel(event) {
    const frame = event.target.closest?.(".dlc-scroll");
    if (!event.ctrlKey || !frame?.contains(this.scene)) return;
    event.preventDefault();
    const { a, d, e, f } = this.scene.getScreenCTM();
    const x = (event.clientX - e) / a, y = (event.clientY - f) / d;
    this.to(this.shown() * (event.deltaY < 0 ? WHEEL_STEP : 1 / WHEEL_STEP));
    const after = this.scene.getScreenCTM();
    frame.scrollLeft += after.e + x * after.a - event.clientX;
    frame.scrollTop += after.f + y * after.d - event.clientY;
  }

  key(event) {
    if (!event.target.classList.contains("dlc-scroll") || event.ctrlKey || event.metaKey || event.altKey) return;
    const scale = { "+": this.shown() * STEP, "-": this.shown() / STEP, 0: null }[event.key];
    if (scale === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.to(scale);
  }

  /** Move a picture that is larger than its frame; the click that ends this chooses nothing. */
  drag(event) {
    const frame = event.target.closest?.(".dlc-scroll");
    const isLarger = frame && (frame.scrollWidth > frame.clientWidth || frame.scrollHeight > frame.clientHeight);
    if (event.button !== 0 || event.pointerType === "touch" || !isLarger || !frame.contains(this.scene)) return;
    const { clientX: x, clientY: y } = event, { scrollLeft: left, scrollTop: top } = frame;
    const onScrollbar = event.offsetX > frame.clientWidth && event.target === frame;
    if (onScrollbar) return;
    let isDragged = false;
    const done = new AbortController(), options = { signal: done.signal };
    window.addEventListener("pointermove", (moved) => {
      isDragged ||= Math.hypot(moved.clientX - x, moved.clientY - y) > DRAG_PX;
      if (!isDragged) return;
      frame.classList.add("dlc-panned");
      frame.scrollTo(left + x - moved.clientX, top + y - moved.clientY);
    }, options);
    const end = () => {
      done.abort();
      frame.classList.remove("dlc-panned");
      if (isDragged) swallowClick();
    };
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, end, options);
  }
}
