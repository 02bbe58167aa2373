// Pieces of a picture at the size they are shown at, fetched when they come into sight.

const SIDE = 512;
const MAX_KEPT = 240; // one has a megabyte
const MAX_LEVEL = 8;
const FIRST_PAUSE = 250, LONGEST_PAUSE = 8000; // milliseconds until a tile that did not come is asked for again

export class Tiles {
  constructor(layer, onLoad) {
    Object.assign(this, { layer, onLoad, id: "", version: 0, kept: new Map() });
  }

  reset(id, version) {
    for (const tile of this.kept.values()) tile.bitmap?.close();
    this.kept = new Map();
    Object.assign(this, { id, version });
  }

  // Tiles that touch the changed box (top, left, bottom, right) are fetched again; until then the old ones show.
  update(version, box) {
    if (version === this.version) return;
    const all = !box || version !== this.version + 1;
    this.version = version;
    for (const tile of this.kept.values()) {
      const { level, column, row } = tile;
      const side = SIDE << level;
      const touched = box && box[1] < (column + 1) * side && box[3] > column * side && box[0] < (row + 1) * side && box[2] > row * side;
      if (all || touched) tile.wanted = version;
    }
  }

  static levelFor(view, ratio) {
    const most = Math.max(0, Math.ceil(Math.log2(Math.max(view.width, view.height) / SIDE)));
    const level = Math.floor(Math.log2(1 / (view.scale * ratio)) + 0.01);
    return Math.max(0, Math.min(level, most, MAX_LEVEL));
  }

  // Draws what is there, coarse below fine, and fetches what is missing. Returns whether nothing is.
  draw(context, view, ratio) {
    const level = Tiles.levelFor(view, ratio);
    const base = Math.min(MAX_LEVEL, Math.max(level, Math.ceil(Math.log2(Math.max(view.width, view.height) / (2 * SIDE)))));
    context.imageSmoothingEnabled = view.scale * ratio < 2;
    let complete = true;
    for (const each of base > level ? [base, level] : [level]) complete = this.drawLevel(context, view, each) && complete;
    return complete;
  }

  drawLevel(context, view, level) {
    const side = SIDE << level;
    const [left, top, right, bottom] = view.visible();
    let complete = true;
    for (let row = Math.floor(top / side); row * side < bottom; row++)
      for (let column = Math.floor(left / side); column * side < right; column++) {
        const tile = this.tile(level, column, row);
        if (tile.shown !== tile.wanted) complete = false;
        if (!tile.bitmap) continue;
        const width = Math.min(side, view.width - column * side), height = Math.min(side, view.height - row * side);
        const [x, y] = view.toScreen(column * side, row * side);
        // Edges on whole pixels of the screen, or seams show.
        const [x1, y1] = [Math.round(x + width * view.scale), Math.round(y + height * view.scale)];
        context.drawImage(tile.bitmap, Math.round(x), Math.round(y), x1 - Math.round(x), y1 - Math.round(y));
      }
    return complete;
  }

  tile(level, column, row) {
    const key = `${level}/${column}/${row}`;
    let tile = this.kept.get(key);
    if (!tile) tile = { level, column, row, bitmap: null, shown: -1, wanted: this.version, loading: false, failed: 0 };
    this.kept.delete(key); // and in again at the end: the oldest go first
    this.kept.set(key, tile);
    if (tile.shown !== tile.wanted && !tile.loading) this.load(tile, key);
    for (const [old, other] of this.kept) {
      if (this.kept.size <= MAX_KEPT) break;
      other.bitmap?.close();
      this.kept.delete(old);
    }
    return tile;
  }

  async load(tile, key) {
    tile.loading = true;
    const { id } = this, version = tile.wanted;
    try {
      const answer = await fetch(`/photos/${id}/tiles/${this.layer}/${key}?v=${version}`);
      if (answer.status === 403) return; // the photograph is no longer there: not asked for again
      if (!answer.ok) throw new Error(answer.statusText);
      const bitmap = answer.status === 204 ? null : await createImageBitmap(await answer.blob());
      if (id !== this.id) return bitmap?.close();
      tile.bitmap?.close();
      Object.assign(tile, { bitmap, shown: version, failed: 0 });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** tile.failed++)));
    }
    tile.loading = false;
    if (id === this.id) this.onLoad();
  }
}
