// Draws the photograph and what is marked on it, whenever something has changed.

import { Marks } from "./marks.js";
import { Tiles } from "./tiles.js";

const ANTS_PER_SECOND = 10;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Screen {
  constructor(canvas, view) {
    Object.assign(this, { canvas, view, state: null, shapes: [], showsOriginal: false, cursor: null, asked: false, phase: 0 });
    this.context = canvas.getContext("2d");
    const redraw = () => this.redraw();
    this.tiles = Object.fromEntries(["pixels", "original", "hole", "source"].map((layer) => [layer, new Tiles(layer, redraw)]));
    this.marks = new Marks();
    new ResizeObserver(() => this.resize()).observe(canvas);
    setInterval(() => this.march(), 1000 / ANTS_PER_SECOND);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.view.setScreen(width, height);
    this.draw();
  }

  show(state) {
    const old = this.state;
    this.state = state;
    this.view.setPicture(state.width, state.height);
    const another = old?.id !== state.id, resized = old?.width !== state.width || old?.height !== state.height;
    for (const [layer, tiles] of Object.entries(this.tiles)) {
      const version = layer === "pixels" ? state.version : layer === "original" ? 0 : state.mask_version;
      if (another || resized) tiles.reset(state.id, version);
      else tiles.update(version, layer === "pixels" ? state.changed : null);
    }
    this.redraw();
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    this.canvas.dataset.complete = ""; // until it is drawn
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  march() {
    if (!this.state || still.matches || document.hidden) return;
    if (!this.state.hole && !this.state.source && !this.shapes.length) return;
    this.phase = (this.phase + 1) % 8;
    this.redraw();
  }

  draw() {
    const { context, view, ratio, state } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!state) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    checkers(context, view);
    let complete = this.tiles.pixels.draw(context, view, ratio);
    if (this.showsOriginal) complete = this.tiles.original.draw(context, view, ratio);
    else
      for (const layer of ["source", "hole"]) {
        const shapes = this.shapes.filter((shape) => shape.layer === layer);
        if (!state[layer] && !shapes.length) continue;
        const settled = this.marks.draw(context, view, ratio, { layer, tiles: this.tiles[layer], shapes, phase: this.phase });
        complete = settled && complete;
        // The server's mask shows what these shapes do.
        if (settled) this.shapes = this.shapes.filter((shape) => shape.layer !== layer || !(shape.until <= state.mask_version));
      }
    for (const shape of this.shapes) if (shape.until <= state.mask_version && !state[shape.layer]) shape.gone = true;
    this.shapes = this.shapes.filter((shape) => !shape.gone);
    if (this.cursor) this.drawCursor();
    this.canvas.dataset.complete = complete ? `${state.id}/${state.version}/${state.mask_version}` : "";
  }

  drawCursor() {
    const { context, cursor: { x, y, size, cross, label } } = this;
    for (const [color, width] of [["rgb(0 0 0 / 75%)", 3], ["#fff", 1.25]]) {
      Object.assign(context, { strokeStyle: color, lineWidth: width });
      context.beginPath();
      if (size) context.arc(x, y, Math.max(1, size / 2), 0, 2 * Math.PI);
      if (cross) {
        context.moveTo(x - 12, y);
        context.lineTo(x + 12, y);
        context.moveTo(x, y - 12);
        context.lineTo(x, y + 12);
      }
      context.stroke();
    }
    if (!label) return;
    Object.assign(context, { font: "600 15px system-ui, sans-serif", textAlign: "center", lineWidth: 3, strokeStyle: "#000", fillStyle: "#fff" });
    context.strokeText(label, x, y + 5);
    context.fillText(label, x, y + 5);
  }
}

// Behind transparent pixels.
function checkers(context, view) {
  const [x, y] = view.toScreen(0, 0), [right, bottom] = view.toScreen(view.width, view.height);
  context.fillStyle = "#c4c6cc";
  context.fillRect(Math.round(x), Math.round(y), Math.round(right) - Math.round(x), Math.round(bottom) - Math.round(y));
}
