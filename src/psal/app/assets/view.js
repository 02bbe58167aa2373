// Where the photograph is on the screen: a scale and a shift, in CSS pixels.

const MAX_SCALE = 32;

export class View {
  constructor() {
    Object.assign(this, { width: 1, height: 1, screenWidth: 1, screenHeight: 1, scale: 1, x: 0, y: 0, fitted: true });
  }

  setPicture(width, height) {
    if (width === this.width && height === this.height) return;
    Object.assign(this, { width, height });
    this.fit();
  }

  setScreen(width, height) {
    const [dx, dy] = [(width - this.screenWidth) / 2, (height - this.screenHeight) / 2];
    Object.assign(this, { screenWidth: width, screenHeight: height });
    if (this.fitted) this.fit();
    else this.pan(dx, dy);
  }

  // The tools at the bottom cover a part of the screen.
  get room() {
    const phone = this.screenWidth < 500;
    return { margin: phone ? 8 : 24, bottom: phone ? 8 : 76 };
  }

  get fitScale() {
    const { margin, bottom } = this.room;
    const across = (this.screenWidth - 2 * margin) / this.width;
    return Math.max(0.001, Math.min(across, (this.screenHeight - margin - bottom) / this.height, 4));
  }

  fit() {
    const { margin, bottom } = this.room;
    this.scale = this.fitScale;
    this.x = (this.screenWidth - this.width * this.scale) / 2;
    this.y = margin + (this.screenHeight - margin - bottom - this.height * this.scale) / 2;
    this.fitted = true;
  }

  zoomAt(scale, x, y) {
    const [imageX, imageY] = this.toImage(x, y);
    this.scale = Math.min(MAX_SCALE, Math.max(Math.min(this.fitScale, 1) / 2, scale));
    this.x = x - imageX * this.scale;
    this.y = y - imageY * this.scale;
    this.fitted = false;
    this.pan(0, 0);
  }

  zoomBy(factor) {
    this.zoomAt(this.scale * factor, this.screenWidth / 2, this.screenHeight / 2);
  }

  // A corner of the photograph always stays in sight.
  pan(dx, dy) {
    const keep = 60;
    this.x = Math.min(this.screenWidth - keep, Math.max(keep - this.width * this.scale, this.x + dx));
    this.y = Math.min(this.screenHeight - keep, Math.max(keep - this.height * this.scale, this.y + dy));
    if (dx || dy) this.fitted = false;
  }

  toImage(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  toScreen(x, y) {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  // Left, top, right, bottom of what is in sight, in pixels of the photograph.
  visible() {
    const [left, top] = this.toImage(0, 0);
    const [right, bottom] = this.toImage(this.screenWidth, this.screenHeight);
    return [Math.max(0, left), Math.max(0, top), Math.min(this.width, right), Math.min(this.height, bottom)];
  }
}
