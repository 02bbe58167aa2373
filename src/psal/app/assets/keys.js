// The keyboard: everything that the mouse does, painting included.

const find = (id) => document.getElementById(id);
const TOOLS = { b: "brush", e: "eraser", l: "lasso", r: "rectangle", h: "hand" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function setUpKeys(editor, openFile) {
  const canvas = find("canvas");
  let cursor = null; // place on the screen

  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const control = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
    const field = event.target.closest?.("input:not([type=range], [type=checkbox], [type=radio]), select, textarea");
    if (control && key === "o") return event.preventDefault(), openFile();
    if (!editor.state || field) return;
    if (control && key === "z") return event.preventDefault(), event.shiftKey ? editor.redo() : editor.undo();
    if (control && key === "y") return event.preventDefault(), editor.redo();
    if (control && key === "s") return event.preventDefault(), editor.download();
    if ((control || event.altKey) && !event.getModifierState("AltGraph")) return; // AltGr writes [ on many keyboards
    if (key in TOOLS) return editor.setTool(TOOLS[key]);
    if (key === "[" || key === "]") return editor.setSize(step(editor.size, key === "]" ? 1 : -1));
    if (key === "o" && !event.repeat) return editor.showOriginal(true);
    if (key === "+" || key === "=") return editor.zoom((view) => view.zoomBy(1.25));
    if (key === "-") return editor.zoom((view) => view.zoomBy(0.8));
    if (key === "0") return editor.zoom((view) => view.fit());
    if (key === "1") return editor.zoom((view) => view.zoomBy(1 / (view.scale * editor.screen.ratio)));
    if (key === "escape") return editor.drawing ? editor.cancel() : editor.state.job && editor.act("/stop");
    if (key === " " && (event.target === canvas || event.target === document.body)) {
      event.preventDefault();
      editor.gestures.space = true;
      canvas.classList.add("hand");
      return;
    }
    if (event.target === canvas) paintByKeys(event);
  });

  addEventListener("keyup", (event) => {
    if (event.key === " ") {
      editor.gestures.space = false;
      canvas.classList.toggle("hand", editor.tool === "hand");
    }
    if (event.key.toLowerCase() === "o") editor.showOriginal(false);
    if (["Control", "Shift", "Meta"].includes(event.key)) editor.fillCollected();
  });

  // Keys that are released in another window.
  addEventListener("blur", () => {
    editor.gestures.space = false;
    canvas.classList.toggle("hand", editor.tool === "hand");
    editor.showOriginal(false);
  });

  // The space bar must press the button that has the focus, but only move the photograph on the canvas.
  function paintByKeys(event) {
    const move = ARROWS[event.key];
    if (move) {
      event.preventDefault();
      const pace = event.shiftKey ? 1 : Math.max(4, (editor.size * editor.view.scale) / 2);
      cursor ??= [editor.view.screenWidth / 2, editor.view.screenHeight / 2];
      cursor = cursor.map((x, axis) => x + pace * move[axis]);
      editor.screen.cursor = { x: cursor[0], y: cursor[1], size: editor.size * editor.view.scale, cross: true };
      editor.screen.redraw();
    } else if (event.key === "Enter" && cursor && editor.tool !== "hand") {
      event.preventDefault();
      const point = editor.view.toImage(...cursor), reach = editor.size / 2;
      editor.begin(editor.tool === "rectangle" ? point.map((x) => x - reach) : point);
      if (editor.tool === "rectangle") editor.extend(point.map((x) => x + reach));
      if (editor.tool === "lasso") editor.drawing.kind = "stroke";
      editor.finish(event.shiftKey);
    }
  }
}

// Steps of one pixel for small brushes, of a tenth for larger ones.
function step(size, direction) {
  return size + direction * Math.max(1, Math.round(size * 0.1));
}
