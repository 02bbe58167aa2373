// Fingers, pens, mice and wheels on the canvas. One draws; two, Space, the middle button or the hand move and zoom.

export class Gestures {
  constructor(canvas, view, { tool, onStart, onMove, onEnd, onCancel, onView, onHover }) {
    Object.assign(this, { canvas, view, tool, onStart, onMove, onEnd, onCancel, onView, onHover });
    this.pointers = new Map();
    this.mode = null; // "draw", "pan" or "pinch"
    this.space = false;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.up(event, true));
    canvas.addEventListener("pointerleave", () => this.onHover(null));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    if (this.pointers.size === 2) {
      if (this.mode === "draw") this.onCancel(); // two fingers never paint
      this.mode = "pinch";
      this.pinch = this.spread();
    } else if (this.pointers.size === 1) {
      const pans = this.space || this.tool() === "hand" || event.button === 1;
      if (!pans && event.button !== 0) return;
      this.mode = pans ? "pan" : "draw";
      this.canvas.classList.toggle("dragging", pans);
      if (!pans) this.onStart(this.view.toImage(...this.place(event)), event);
    }
  }

  move(event) {
    const place = this.place(event), before = this.pointers.get(event.pointerId);
    if (!before) return this.onHover(event.pointerType === "mouse" ? place : null);
    this.pointers.set(event.pointerId, place);
    if (this.mode === "pinch" && this.pointers.size === 2) {
      const now = this.spread(), old = this.pinch;
      this.view.pan(now.x - old.x, now.y - old.y);
      this.view.zoomAt((this.view.scale * now.distance) / old.distance, now.x, now.y);
      this.pinch = now;
      this.onView();
    } else if (this.mode === "pan") {
      this.view.pan(place[0] - before[0], place[1] - before[1]);
      this.onView();
    } else if (this.mode === "draw") {
      const all = event.getCoalescedEvents?.() ?? [];
      for (const each of all.length ? all : [event]) this.onMove(this.view.toImage(...this.place(each)));
      this.onHover(event.pointerType === "mouse" ? place : null);
    }
  }

  up(event, cancelled = false) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.mode === "draw") cancelled ? this.onCancel() : this.onEnd(event);
    // After a pinch the finger that stays must not paint either.
    if (this.mode !== "pinch" || !this.pointers.size) this.mode = null;
    this.canvas.classList.remove("dragging");
  }

  spread() {
    const [[x0, y0], [x1, y1]] = [...this.pointers.values()];
    return { x: (x0 + x1) / 2, y: (y0 + y1) / 2, distance: Math.max(1, Math.hypot(x1 - x0, y1 - y0)) };
  }

  wheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const [x, y] = this.place(event);
    if (event.shiftKey) this.view.pan(-event.deltaY * unit, 0);
    else this.view.zoomAt(this.view.scale * Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0015)), x, y);
    this.onView();
  }
}
