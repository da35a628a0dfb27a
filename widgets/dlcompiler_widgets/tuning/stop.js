/* The button that stops a tuning run. It says hello when it has been on the page for a moment: an
 * answered message makes JupyterLab deliver the next one also while a cell is busy. */

const HELLO_AFTER_MS = 1200;
const LABELS = {
  running: "Stop",
  stopping: "Stopping …",
  stopped: "Stopped",
  finished: "Finished",
  failed: "Failed",
};

export default {
  render({ model, el, signal }) {
    const root = document.createElement("div");
    root.className = "dlc-tuning-control";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "dlc-tuning-stop";
    button.setAttribute("aria-label", "Stop tuning; what was measured is kept");
    // Without it, JupyterLab and Notebook 7 take letters typed here for their own commands.
    button.dataset.lmSuppressShortcuts = "true";
    root.append(button);
    el.append(root);

    let state = model.get("state");
    const show = () => {
      button.textContent = LABELS[state] ?? state;
      const isRunning = state === "running";
      button.setAttribute("aria-disabled", String(!isRunning));
    };
    const onState = () => {
      state = model.get("state");
      show();
    };
    button.addEventListener("click", () => {
      if (state !== "running") return;
      state = "stopping";
      show();
      model.set("asked", model.get("asked") + 1);
      model.save_changes();
    });
    model.on("change:state", onState);
    show();
    const timer = setTimeout(() => {
      model.set("hello", model.get("hello") + 1);
      model.save_changes();
    }, HELLO_AFTER_MS);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      model.off("change:state", onState);
    });
  },
};
