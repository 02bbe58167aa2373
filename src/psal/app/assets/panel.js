// Everything around the canvas: progress, messages, steps, variants, and the edits of the whole picture.

import { sentence } from "./server.js";

const find = (id) => document.getElementById(id);
const MESSAGE_MILLISECONDS = 8000;

export class Panel {
  constructor(editor) {
    Object.assign(this, { editor, references: {}, said: null, waiting: null });
  }

  setUp(choose) {
    const { editor } = this;
    for (const radio of document.querySelectorAll("#edits input"))
      radio.onchange = () => {
        for (const section of document.querySelectorAll("[data-edit]")) section.hidden = section.dataset.edit !== radio.value;
      };
    for (const section of document.querySelectorAll("[data-edit]")) {
      const edit = section.dataset.edit, name = section.querySelector(".reference-name");
      const set = (reference, text) => {
        this.references[edit] = reference;
        name.textContent = text;
      };
      section.querySelector(".reference")?.addEventListener("click", () => choose("partner", ([file]) => set(file, file.name)));
      section.querySelector(".reference-sample")?.addEventListener("click", () => set("sample", "the sample’s reference"));
      section.querySelector(".run")?.addEventListener("click", () => this.run(edit));
    }
    find("panel-open").onclick = () => this.toggle(true);
    find("panel-close").onclick = () => this.toggle(false);
    find("panel").addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    find("steps").onclick = (event) => {
      const button = event.target.closest("button");
      if (button) editor.goTo(Number(button.dataset.position));
    };
    find("variant-list").onclick = (event) => {
      const button = event.target.closest("button");
      if (button) editor.act("/variant", { json: { index: Number(button.dataset.index) } });
    };
  }

  toggle(opens) {
    find("panel").classList.toggle("open", opens);
    find("panel-open").setAttribute("aria-expanded", String(opens));
    (opens ? find("panel-close") : find("panel-open")).focus();
  }

  run(edit) {
    const params = { seed: this.seed() }, reference = this.references[edit];
    if (edit === "upscale") params.scale = find("scale").value;
    if (edit === "outpaint") for (const side of ["left", "right", "top", "bottom"]) params[side] = find(side).value || 0;
    if (edit === "colorize") params.model = find("model").value;
    if (["colorize", "reconstruct"].includes(edit) && !reference) return say("Choose a reference picture first.", "error");
    if (reference === "sample") params.sample = 1;
    else if (reference) params.name = reference.name;
    this.toggleIfOpen();
    return this.editor.act(`/edits/${edit}`, { params, body: reference instanceof File ? reference : undefined });
  }

  toggleIfOpen() {
    if (find("panel").classList.contains("open")) this.toggle(false);
  }

  seed() {
    return Number(find("seed").value) || 0;
  }

  // Settings of a fill.
  fillOptions() {
    return { seed: this.seed(), feather: Number(find("feather").value) || 0 };
  }

  show(state, old) {
    find("name").textContent = state.name;
    find("dimensions").textContent = ` · ${state.width} × ${state.height}`;
    document.title = `${state.name} – psal`;
    const running = Boolean(state.job);
    find("undo").disabled = !running && state.position === 0;
    find("redo").disabled = running || state.position === state.steps.length;
    find("fill").hidden = running || !state.hole;
    for (const id of ["invert", "clear", "grow", "mask-file", "another"]) find(id).disabled = running;
    for (const button of document.querySelectorAll(".run")) button.disabled = running;
    this.showProgress(state.job);
    this.showSteps(state, old);
    this.showVariants(state.variants);
    find("guide-name").textContent = state.guide ?? "";
    find("guide-clear").hidden = !state.guide;
    const { message } = state, text = JSON.stringify(message);
    if (message && !running && text !== this.said) say(sentence(message.text), message.kind);
    this.said = running ? null : text;
    if (state.dropped && !old?.dropped) say(sentence(state.dropped));
    document.body.dataset.state = running ? "running" : "ready";
  }

  showProgress(job) {
    this.waiting ??= null;
    const label = job?.label ?? this.waiting;
    find("progress").hidden = !label;
    find("fill").hidden ||= Boolean(label);
    if (!label) return;
    const parts = [job?.place ? `Waiting, ${job.place} in the queue` : label];
    if (job?.share) parts.push(`${Math.round(job.share * 100)} %`);
    if (job?.left) parts.push(`about ${duration(job.left)} left`);
    find("progress-text").textContent = parts.join(" · ");
    if (job?.share) find("progress-bar").value = job.share;
    else find("progress-bar").removeAttribute("value");
    find("stop").hidden = !job;
  }

  // Work without a job: a file is on its way.
  busy(label) {
    this.waiting = label;
    this.showProgress(this.editor.state?.job);
  }

  showSteps(state, old) {
    if (old && old.id === state.id && old.position === state.position && String(old.steps) === String(state.steps)) return;
    const labels = [state.dropped ? "Earlier" : "Original", ...state.steps];
    find("steps").replaceChildren(
      ...labels.map((label, position) => {
        const item = document.createElement("li"), button = document.createElement("button");
        button.textContent = label;
        button.dataset.position = position;
        if (position === state.position) button.setAttribute("aria-current", "step");
        item.classList.toggle("undone", position > state.position);
        item.append(button);
        return item;
      }),
    );
  }

  showVariants(variants) {
    find("variants").hidden = !variants;
    if (!variants) return;
    find("variant-list").replaceChildren(
      ...variants.seeds.map((seed, index) => {
        const button = document.createElement("button");
        Object.assign(button, { textContent: index + 1, title: `seed ${seed}` });
        Object.assign(button.dataset, { index });
        button.setAttribute("aria-label", `Variant ${index + 1}`);
        button.setAttribute("aria-current", String(index === variants.chosen));
        return button;
      }),
    );
  }

  showSize() {
    find("size").value = this.editor.size;
    find("size-slider").value = (Math.log(this.editor.size) / Math.log(1000)) * 100;
    find("size-slider").setAttribute("aria-valuetext", `${this.editor.size} pixels`);
  }

  lost(isLost) {
    if (!isLost) document.querySelector(".message.lost")?.remove();
    else if (!document.querySelector(".message.lost")) say("The connection is lost. Trying again …", "lost", { stays: true });
  }

  expired() {
    this.lost(false);
    if (document.querySelector(".message.expired")) return;
    const button = document.createElement("button");
    button.textContent = "Load again";
    button.onclick = () => {
      sessionStorage.removeItem("photo");
      this.editor.state = null; // nothing to warn of: it is gone
      location.reload();
    };
    say("The server was started anew, or this page was left for too long: the photograph is no longer there.", "error expired", { stays: true, button });
  }
}

// A message where one looks: over the photograph.
export function say(text, kind = "info", { stays = false, button = null } = {}) {
  for (const old of document.querySelectorAll(".message:not(.lost, .expired)")) old.remove();
  const box = document.createElement("div"), close = document.createElement("button");
  box.className = `message ${kind}`;
  if (kind.startsWith("error")) box.setAttribute("role", "alert");
  box.append(Object.assign(document.createElement("span"), { textContent: text }));
  Object.assign(close, { className: "icon", textContent: "×" });
  close.setAttribute("aria-label", "Close this message");
  close.onclick = () => box.remove();
  box.append(...(button ? [button] : stays ? [] : [close]));
  find("messages").append(box);
  if (!stays && kind === "info") setTimeout(() => box.remove(), MESSAGE_MILLISECONDS);
}

function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
