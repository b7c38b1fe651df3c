// Pan and zoom: a stage that is moved under a window by wheel (with Ctrl or ⌘ it zooms), drag, pinch and keys.

const LEAST = 0.12;
const PAD = 10;
const MOST = 2.5;
const DRAG_FROM_PX = 4;
const LINE_PX = 33; // of a wheel that counts lines

export class Viewport {
  /**
   * @param {HTMLElement} frame  What is looked through; takes the pointer's events.
   * @param {HTMLElement} stage  What is moved.
   */
  constructor(frame, stage) {
    this.frame = frame;
    this.stage = stage;
    this.view = { x: 16, y: 16, scale: 1 };
    this.isMoved = false; // by the user, whose view then stays as it is
    this.isOn = true;
    this.covered = 0; // pixels at the right edge that something lies over
    this.pointers = new Map();
    frame.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.#pressed(event));
    frame.addEventListener("pointermove", (event) => this.#moved(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) frame.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
  }

  /** Switch panning and zooming off where the frame scrolls by itself. */
  set on(isOn) {
    this.isOn = isOn;
    this.#show();
  }

  /** The scale at which a rectangle of the stage is seen whole: as large as it fits, but no larger than it is. */
  scaleFor({ width, height }) {
    const { clientWidth, clientHeight } = this.frame;
    return Math.min((clientWidth - 2 * PAD) / width, (clientHeight - 2 * PAD) / height, 1);
  }

  /** Show a rectangle of the stage whole. */
  fit({ x, y, width, height }) {
    const { clientWidth, clientHeight } = this.frame;
    const scale = this.scaleFor({ width, height });
    if (scale <= 0) return; // there is no room yet
    this.view = { scale, x: (clientWidth - width * scale) / 2 - x * scale, y: (clientHeight - height * scale) / 2 - y * scale };
    this.#show();
  }

  /** Show a box at the left edge at a scale, with as much as there is above and below it of `all`. */
  startAt(box, all, scale) {
    const { clientHeight } = this.frame;
    const [first, last] = [PAD - all.y * scale, clientHeight - PAD - (all.y + all.height) * scale];
    const wanted = clientHeight / 2 - (box.y + box.height / 2) * scale;
    this.view = { scale, x: PAD - box.x * scale, y: first < last ? (first + last) / 2 : Math.min(Math.max(wanted, last), first) };
    this.#show();
  }

  /** Zoom by a factor around a point of the frame, by default its middle. */
  zoom(factor, at = { x: this.frame.clientWidth / 2, y: this.frame.clientHeight / 2 }) {
    const { x, y, scale } = this.view;
    const wanted = Math.min(Math.max(scale * factor, Math.min(scale, LEAST)), MOST); // a large tree fits at less
    const real = wanted / scale;
    this.view = { scale: wanted, x: at.x - (at.x - x) * real, y: at.y - (at.y - y) * real };
    this.isMoved = true;
    this.#show();
  }

  /** Move by pixels. */
  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.isMoved = true;
    this.#show();
  }

  /** Move just so far that a box is seen whole, one from far away into the middle; too small ones grow until they can be read. */
  bringIn({ x, y, width, height }) {
    if (!this.isOn) return;
    const clientWidth = this.frame.clientWidth - this.covered;
    const { clientHeight } = this.frame;
    if (this.view.scale < 0.55) this.zoom(0.8 / this.view.scale, this.#onFrame(x + width / 2, y + height / 2));
    const { scale } = this.view;
    const [left, top] = [x * scale + this.view.x, y * scale + this.view.y];
    const dx = Math.max(PAD - left, 0) || Math.min(clientWidth - PAD - left - width * scale, 0);
    const dy = Math.max(PAD - top, 0) || Math.min(clientHeight - PAD - top - height * scale, 0);
    const isFar = Math.abs(dx) > clientWidth / 2 || Math.abs(dy) > clientHeight / 2;
    if (isFar) this.pan((clientWidth - width * scale) / 2 - left, (clientHeight - height * scale) / 2 - top);
    else if (dx || dy) this.pan(dx, dy);
  }

  #onFrame(x, y) {
    return { x: x * this.view.scale + this.view.x, y: y * this.view.scale + this.view.y };
  }

  #show() {
    const { x, y, scale } = this.view;
    this.stage.style.transform = this.isOn ? `translate(${x}px, ${y}px) scale(${scale})` : "none";
  }

  #wheeled(event) {
    if (!this.isOn) return;
    event.preventDefault();
    const unit = event.deltaMode ? LINE_PX : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey) { // as a pinch on a touchpad says it too
      const box = this.frame.getBoundingClientRect();
      this.zoom(Math.exp(-dy * 0.0015), { x: event.clientX - box.left, y: event.clientY - box.top });
    } else if (event.shiftKey) this.pan(-(dx || dy), 0);
    else this.pan(-dx, -dy);
  }

  #pressed(event) {
    if (!this.isOn || event.button) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, fromX: event.clientX, fromY: event.clientY });
    this.isDragged = false;
  }

  #moved(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const far = Math.hypot(event.clientX - before.fromX, event.clientY - before.fromY) > DRAG_FROM_PX;
    if (far && !this.isDragged) {
      this.isDragged = true;
      this.frame.setPointerCapture(event.pointerId);
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const now = { ...before, x: event.clientX, y: event.clientY };
    if (others.length) this.#pinch(before, now, others[0]);
    else if (this.isDragged) this.pan(now.x - before.x, now.y - before.y);
    this.pointers.set(event.pointerId, now);
  }

  #pinch(before, now, other) {
    const box = this.frame.getBoundingClientRect();
    const apart = (at) => Math.hypot(at.x - other.x, at.y - other.y) || 1;
    this.zoom(apart(now) / apart(before), { x: (now.x + other.x) / 2 - box.left, y: (now.y + other.y) / 2 - box.top });
    this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  }
}
