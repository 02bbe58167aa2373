// Painting a hole over a photograph. The value says what to paint on: {preview, mask}; the strokes stay
// here, and window.psalPainted() gives them as a PNG that is opaque in the hole.
const COLOR = "#ff2d6f";
const MAX_STEPS = 30; // that can be undone
const part = (name) => element.querySelector(name);
const canvas = () => part(".painter-canvas");
const pen = () => canvas().getContext("2d", { willReadFrequently: true });
const state = { erasing: false, last: null, past: [], future: [], shown: null };

const tools = () => {
  part(".painter-brush").setAttribute("aria-pressed", String(!state.erasing));
  part(".painter-eraser").setAttribute("aria-pressed", String(state.erasing));
  part(".painter-undo").disabled = state.past.length === 0;
  part(".painter-redo").disabled = state.future.length === 0;
};

const picture = () => pen().getImageData(0, 0, canvas().width, canvas().height);
const remember = () => {
  state.past.push(picture());
  if (state.past.length > MAX_STEPS) state.past.shift();
  state.future = [];
};
const step = (from, to) => {
  if (from.length === 0) return;
  to.push(picture());
  pen().putImageData(from.pop(), 0, 0);
  tools();
};

const load = async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
};

// A mask is white on black; on the canvas the hole is opaque and the rest is not there.
const lay = (mask) => {
  pen().drawImage(mask, 0, 0, canvas().width, canvas().height);
  const pixels = picture();
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(COLOR.slice(at, at + 2), 16));
  for (let at = 0; at < pixels.data.length; at += 4) {
    const inHole = pixels.data[at] > 127;
    pixels.data.set(inHole ? [red, green, blue, 255] : [0, 0, 0, 0], at);
  }
  pen().putImageData(pixels, 0, 0);
};

const show = async () => {
  const value = props.value;
  element.querySelector(".painter").hidden = !value?.preview;
  if (!value?.preview) {
    state.shown = null;
    return;
  }
  if (state.shown !== value.preview) {
    state.shown = value.preview;
    const photo = await load(value.preview);
    part(".painter-photo").src = value.preview;
    canvas().width = photo.naturalWidth;
    canvas().height = photo.naturalHeight;
    Object.assign(state, { past: [], future: [], mask: null });
    part(".painter-size").value = Math.max(6, Math.round(Math.max(photo.naturalWidth, photo.naturalHeight) / 20));
  }
  if ((value.mask ?? null) !== state.mask) {
    state.mask = value.mask ?? null;
    const mask = state.mask && (await load(state.mask));
    remember();
    if (mask) lay(mask);
    else pen().clearRect(0, 0, canvas().width, canvas().height);
  }
  tools();
  element.dataset.ready = value.preview;
};

const place = (event) => {
  const box = canvas().getBoundingClientRect();
  const scale = canvas().width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
};

const dab = (to) => {
  const brush = pen();
  brush.globalCompositeOperation = state.erasing ? "destination-out" : "source-over";
  brush.strokeStyle = COLOR;
  brush.lineWidth = Number(part(".painter-size").value);
  brush.lineCap = brush.lineJoin = "round";
  brush.beginPath();
  brush.moveTo(...state.last);
  brush.lineTo(...to);
  brush.stroke();
  brush.globalCompositeOperation = "source-over";
  state.last = to;
};

const follow = (event) => {
  const cursor = part(".painter-cursor");
  const box = canvas().getBoundingClientRect();
  const side = (Number(part(".painter-size").value) * box.width) / canvas().width;
  cursor.hidden = event.type === "pointerleave";
  Object.assign(cursor.style, {
    width: `${side}px`, height: `${side}px`,
    left: `${event.clientX - box.left - side / 2}px`, top: `${event.clientY - box.top - side / 2}px`,
  });
};

element.addEventListener("pointerdown", (event) => {
  if (event.target !== canvas() || event.button !== 0) return;
  event.preventDefault();
  canvas().focus({ preventScroll: true });
  canvas().setPointerCapture(event.pointerId);
  remember();
  state.last = place(event);
  dab(state.last);
  tools();
});
element.addEventListener("pointermove", (event) => {
  if (event.target !== canvas()) return;
  follow(event);
  if (state.last) for (const each of event.getCoalescedEvents?.() ?? [event]) dab(place(each));
});
for (const kind of ["pointerup", "pointercancel"]) element.addEventListener(kind, () => (state.last = null));
canvas().addEventListener("pointerleave", follow);
element.addEventListener("click", (event) => {
  const pressed = (name) => event.target.closest(name);
  if (pressed(".painter-brush")) state.erasing = false;
  if (pressed(".painter-eraser")) state.erasing = true;
  if (pressed(".painter-undo")) step(state.past, state.future);
  if (pressed(".painter-redo")) step(state.future, state.past);
  if (pressed(".painter-empty")) {
    remember();
    pen().clearRect(0, 0, canvas().width, canvas().height);
  }
  tools();
});
element.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  if (event.shiftKey) step(state.future, state.past);
  else step(state.past, state.future);
});

window.psalPainted = () => (state.shown ? canvas().toDataURL("image/png") : "");
watch("value", show);
show();
