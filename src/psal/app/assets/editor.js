// The editor: opens photographs, turns gestures into requests, and shows what the server answers.

import { choose, setUpControls } from "./controls.js";
import { setUpFolder } from "./folder.js";
import { Gestures } from "./gestures.js";
import { setUpKeys } from "./keys.js";
import { Panel, say } from "./panel.js";
import { Screen } from "./screen.js";
import { askJson, follow, save } from "./server.js";
import { View } from "./view.js";

const MIN_STEP = 0.6; // pixels of the screen between two points of a stroke
const MAX_POINTS = 19_000;
const find = (id) => document.getElementById(id);

class Editor {
  constructor() {
    this.view = new View();
    this.screen = new Screen(find("canvas"), this.view);
    Object.assign(this, { state: null, tool: "brush", layer: "hole", size: 40, drawing: null, queue: Promise.resolve(), collected: 0 });
    this.gestures = new Gestures(find("canvas"), this.view, {
      tool: () => this.tool,
      onStart: (point) => this.begin(point),
      onMove: (point) => this.extend(point),
      onEnd: (event) => this.finish(event.ctrlKey || event.shiftKey || event.metaKey),
      onCancel: () => this.cancel(),
      onView: () => this.viewChanged(),
      onHover: (place) => this.hover(place),
    });
    this.panel = new Panel(this);
  }

  // Opening -----------------------------------------------------------------------------------------------------------

  open(file) {
    return this.load("/photos", { body: file, params: { name: file.name || "pasted.png", replaces: this.state?.id ?? "" } });
  }

  openSample(edit = "inpaint") {
    return this.load(`/samples/${edit}`, { params: { replaces: this.state?.id ?? "" } });
  }

  async load(path, options) {
    if (this.hasUnsavedWork() && !confirm("Leave this photograph without downloading it?")) return;
    this.panel.busy("Opening");
    try {
      this.start(await askJson(path, options));
    } catch (error) {
      this.complain(error);
    } finally {
      this.panel.busy(null);
    }
  }

  start(state) {
    this.stopFollowing?.();
    sessionStorage.setItem("photo", state.id);
    delete document.body.dataset.empty;
    this.screen.shapes = [];
    this.size = Math.max(8, Math.round(Math.min(state.width, state.height) * 0.06));
    this.screen.resize();
    this.take(state);
    this.view.fit();
    this.viewChanged();
    this.panel.showSize();
    find("canvas").focus({ preventScroll: true });
    this.stopFollowing = follow(state.id, {
      onState: (next) => this.take(next),
      onLost: () => this.panel.lost(true),
      onGone: () => this.panel.expired(),
    });
  }

  // After a reload, the photograph that was open in this window.
  async resume() {
    const id = sessionStorage.getItem("photo");
    if (!id) return;
    try {
      this.start(await askJson(`/photos/${id}`, { method: "GET" }));
    } catch (error) {
      sessionStorage.removeItem("photo");
      if (error.status !== 403) throw error;
    }
  }

  take(state) {
    const old = this.state;
    if (old?.id === state.id && state.number < old.number) return; // overtaken by a newer one
    this.state = state;
    this.panel.lost(false);
    this.screen.show(state);
    this.panel.show(state, old);
    if (old?.width !== state.width || old?.height !== state.height) this.viewChanged();
  }

  hasUnsavedWork() {
    return Boolean(this.state && !this.state.saved);
  }

  // Drawing -----------------------------------------------------------------------------------------------------------

  begin(point) {
    if (!this.state) return;
    const kind = { brush: "stroke", eraser: "stroke" }[this.tool] ?? this.tool;
    this.drawing = { kind, points: [point], size: this.size, erase: this.tool === "eraser", layer: this.layer };
    this.screen.shapes.push(this.drawing);
    this.screen.redraw();
  }

  extend(point) {
    if (!this.drawing) return;
    const { points, kind } = this.drawing, [x, y] = points.at(-1);
    if (kind === "rectangle") points[1] = point;
    else if (Math.hypot(point[0] - x, point[1] - y) * this.view.scale >= MIN_STEP && points.length < MAX_POINTS) points.push(point);
    this.screen.redraw();
  }

  cancel() {
    this.screen.shapes = this.screen.shapes.filter((shape) => shape !== this.drawing);
    this.drawing = null;
    this.screen.redraw();
  }

  finish(collects) {
    const shape = this.drawing;
    if (!shape) return;
    this.drawing = null;
    if (shape.points.length < { lasso: 3, rectangle: 2 }[shape.kind]) return void this.drop(shape);
    const fill = find("auto").checked && !collects && !shape.erase && shape.layer === "hole";
    if (collects) this.collected++;
    this.send(shape, fill);
  }

  drop(shape) {
    this.screen.shapes = this.screen.shapes.filter((other) => other !== shape);
    this.screen.redraw();
  }

  // Strokes are sent one after the other; those painted while an edit runs wait for its end.
  send(shape, fill) {
    const rounded = shape.points.map((point) => point.map((x) => Math.round(x * 100) / 100));
    this.queue = this.queue.then(async () => {
      await this.idle();
      const { id } = this.state;
      try {
        const json = { ...shape, points: rounded, fill, ...this.panel.fillOptions() };
        const state = await askJson(`/photos/${id}/marks`, { json });
        shape.until = state.mask_version;
        if (this.state.id === id) this.take(state);
      } catch (error) {
        this.drop(shape);
        this.complain(error);
      }
    });
  }

  async idle() {
    while (this.state?.job) await new Promise((resolve) => setTimeout(resolve, 30));
  }

  // Everything that was marked while Ctrl or Shift was held.
  fillCollected() {
    const due = this.collected && find("auto").checked;
    this.collected = 0;
    if (due) this.queue = this.queue.then(() => this.fill());
  }

  // Actions -----------------------------------------------------------------------------------------------------------

  async act(path, options) {
    if (!this.state) return;
    try {
      this.take(await askJson(`/photos/${this.state.id}${path}`, options));
    } catch (error) {
      this.complain(error);
    }
  }

  fill() {
    return this.act("/fill", { json: this.panel.fillOptions() });
  }

  goTo(position) {
    if (this.state && position >= 0 && position <= this.state.steps.length) return this.act("/position", { json: { position } });
  }

  undo() {
    this.collected = 0;
    if (this.state?.job) return this.act("/stop"); // what runs is the last thing that was done
    return this.goTo(this.state?.position - 1);
  }

  redo() {
    this.collected = 0;
    return this.goTo(this.state?.position + 1);
  }

  change(json) {
    return this.act("/marks", { json: { layer: this.layer, ...json } });
  }

  async download() {
    this.panel.busy("Writing the file");
    try {
      await save(`/photos/${this.state.id}/file`);
    } catch (error) {
      this.complain(error);
    } finally {
      this.panel.busy(null);
    }
  }

  complain(error) {
    if (error.name === "AbortError") return;
    if (error.status === 403) this.panel.expired();
    else say(error.message, "error");
  }

  // View --------------------------------------------------------------------------------------------------------------

  setTool(tool) {
    this.tool = tool;
    for (const button of document.querySelectorAll("[data-tool]"))
      button.setAttribute("aria-checked", String(button.dataset.tool === tool));
    find("canvas").classList.toggle("hand", tool === "hand");
    this.hover(null);
  }

  setSize(size) {
    this.size = Math.min(4000, Math.max(1, Math.round(size) || 1));
    this.panel.showSize();
    if (this.screen.cursor?.size) this.screen.cursor.size = this.size * this.view.scale;
    this.screen.redraw();
  }

  // In the middle of the photograph, while the slider moves: a finger has no cursor to see it by.
  previewSize(shows) {
    const { screenWidth, screenHeight, scale } = this.view, size = this.size * scale;
    this.screen.cursor = shows && this.state ? { x: screenWidth / 2, y: screenHeight / 2, size, label: `${this.size} px` } : null;
    this.screen.redraw();
  }

  showOriginal(shows) {
    this.screen.showsOriginal = shows;
    find("original").setAttribute("aria-pressed", String(shows));
    this.screen.redraw();
  }

  hover(place) {
    const round = ["brush", "eraser"].includes(this.tool) && !this.gestures.space;
    this.screen.cursor = place && round && this.state ? { x: place[0], y: place[1], size: this.size * this.view.scale } : null;
    this.screen.redraw();
  }

  viewChanged() {
    find("zoom-value").textContent = `${Math.round(this.view.scale * (this.screen.ratio ?? 1) * 100)} %`;
    this.screen.redraw();
  }

  zoom(action) {
    action(this.view);
    this.viewChanged();
  }
}

export const editor = new Editor();
const openFile = () => choose("file", ([file]) => editor.open(file));
setUpControls(editor, openFile, setUpFolder(editor, choose));
setUpKeys(editor, openFile);
editor.panel.setUp(choose);
editor.resume();
