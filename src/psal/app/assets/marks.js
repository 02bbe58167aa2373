// What is marked, on the screen: a tint, and a black and white edge that shows on any picture.

const LAYERS = { hole: "rgb(255 46 126 / 45%)", source: "rgb(0 170 120 / 40%)" };
const STRIPE = 8; // pixels of the screen

export class Marks {
  constructor() {
    this.mask = document.createElement("canvas").getContext("2d", { willReadFrequently: false });
    this.edge = document.createElement("canvas").getContext("2d");
    this.stripes = stripes();
  }

  // Draws a layer: its tiles, and the shapes that the server does not have yet.
  draw(context, view, ratio, { layer, tiles, shapes, phase }) {
    const { width, height } = context.canvas;
    const mask = prepared(this.mask, width, height);
    mask.setTransform(ratio, 0, 0, ratio, 0, 0);
    const complete = tiles.draw(mask, view, ratio);
    for (const shape of shapes) paint(mask, view, shape);
    const edge = prepared(this.edge, width, height);
    const reach = Math.max(1, Math.round(ratio));
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
      edge.drawImage(mask.canvas, dx * reach, dy * reach);
    edge.globalCompositeOperation = "destination-out";
    edge.drawImage(mask.canvas, 0, 0);
    edge.globalCompositeOperation = "source-in";
    edge.fillStyle = this.stripes;
    edge.translate(phase, 0);
    edge.fillRect(-STRIPE, 0, width + 2 * STRIPE, height);
    mask.setTransform(1, 0, 0, 1, 0, 0);
    mask.globalCompositeOperation = "source-in";
    mask.fillStyle = LAYERS[layer];
    mask.fillRect(0, 0, width, height);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(mask.canvas, 0, 0);
    context.drawImage(edge.canvas, 0, 0);
    context.restore();
    return complete;
  }
}

function prepared(context, width, height) {
  if (context.canvas.width !== width || context.canvas.height !== height) Object.assign(context.canvas, { width, height });
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalCompositeOperation = "source-over";
  context.clearRect(0, 0, width, height);
  return context;
}

function paint(context, view, { kind, points, size, erase }) {
  context.save();
  context.globalCompositeOperation = erase ? "destination-out" : "source-over";
  context.fillStyle = context.strokeStyle = "#fff";
  context.beginPath();
  const [first, ...rest] = points.map(([x, y]) => view.toScreen(x, y));
  if (kind === "stroke") {
    Object.assign(context, { lineWidth: size * view.scale, lineCap: "round", lineJoin: "round" });
    context.moveTo(...first);
    for (const point of rest.length ? rest : [first]) context.lineTo(...point);
    context.stroke();
  } else if (kind === "lasso") {
    context.moveTo(...first);
    for (const point of rest) context.lineTo(...point);
    context.fill("evenodd");
  } else {
    const last = rest.at(-1) ?? first;
    context.fillRect(first[0], first[1], last[0] - first[0], last[1] - first[1]);
  }
  context.restore();
}

function stripes() {
  const canvas = Object.assign(document.createElement("canvas"), { width: STRIPE, height: STRIPE });
  const context = canvas.getContext("2d");
  for (let y = 0; y < STRIPE; y++)
    for (let x = 0; x < STRIPE; x++) {
      context.fillStyle = (x + y) % STRIPE < STRIPE / 2 ? "#000" : "#fff";
      context.fillRect(x, y, 1, 1);
    }
  return context.createPattern(canvas, "repeat");
}
