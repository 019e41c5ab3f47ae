// A view of a picture that is larger than its box: it is moved with the pointer, and zoomed with the wheel, two fingers, or keys.
import createPanzoom, { type PanzoomObject } from "@panzoom/panzoom";

// Area is a rectangle in pixels of the picture.
export interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

const readable = 0.55; // of the natural size: a picture that is smaller is not readable, and then only a part of it is shown first
const largest = 4;
const slip = 4; // pixels that a pointer may move in a click

export class Viewport {
  private readonly panzoom: PanzoomObject;
  private readonly stop = new AbortController();
  private readonly watcher: ResizeObserver;
  private isMoved = false; // by a person
  private isFollowing = false; // the first area was shown

  // box is what is seen of the sheet, which has the picture in its natural size and is the only thing in it. onChange is called when another part is seen.
  // before is the view of the picture that was there: one of the same size shows the same part.
  constructor(
    private readonly box: HTMLElement,
    private readonly sheet: HTMLElement,
    private readonly w: number,
    private readonly h: number,
    private readonly onChange: () => void,
    before?: Viewport,
  ) {
    this.panzoom = createPanzoom(sheet, { canvas: true, animate: false, minScale: Math.min(0.05, this.fitScale), maxScale: largest, step: 0.25, cursor: "grab", handleStartEvent: () => {} });
    const on = { signal: this.stop.signal };
    sheet.addEventListener("panzoomchange", () => this.changed(), on);
    for (const name of ["panzoompan", "panzoomzoom"]) sheet.addEventListener(name, (e) => (this.isMoved ||= !!(e as CustomEvent).detail.originalEvent), on);
    box.addEventListener("wheel", (e) => this.panzoom.zoomWithWheel(e), { ...on, passive: false });
    box.addEventListener("scroll", () => (box.scrollTop = box.scrollLeft = 0), on); // a focus that the browser has scrolled to
    let [x, y] = [0, 0];
    box.addEventListener("pointerdown", (e) => ([x, y] = [e.clientX, e.clientY]), { ...on, capture: true });
    box.addEventListener("click", (e) => e.detail > 0 && Math.hypot(e.clientX - x, e.clientY - y) > slip && e.stopPropagation(), { ...on, capture: true });
    this.watcher = new ResizeObserver(() => (this.isMoved ? this.changed() : this.start()));
    this.watcher.observe(box);
    if (before && before.w === w && before.h === h) {
      this.isMoved = before.isMoved;
      this.isFollowing = before.isFollowing;
      this.set(before.scale, before.seen);
    } else this.start();
  }

  destroy(): void {
    this.stop.abort();
    this.watcher.disconnect();
    this.panzoom.destroy();
  }

  get scale(): number {
    return this.panzoom.getScale();
  }

  // fitScale is the scale with which all of the picture is seen, and at most its natural size.
  private get fitScale(): number {
    const { clientWidth: w, clientHeight: h } = this.box;
    return w > 0 && h > 0 ? Math.min(1, w / this.w, h / this.h) : 1;
  }

  // seen returns the part of the picture that is seen.
  get seen(): Area {
    const s = this.scale;
    const { x, y } = this.panzoom.getPan();
    return { x: this.w / 2 - this.w / 2 / s - x, y: this.h / 2 - this.h / 2 / s - y, w: this.box.clientWidth / s, h: this.box.clientHeight / s };
  }

  get showsAll(): boolean {
    const v = this.seen;
    return v.x <= 1 && v.y <= 1 && v.x + v.w >= this.w - 1 && v.y + v.h >= this.h - 1;
  }

  // start shows all of the picture, or as much of its beginning as is readable.
  private start(): void {
    this.set(Math.max(this.fitScale, readable), { x: 0, y: 0, w: this.w, h: 0 });
  }

  fit(): void {
    this.isMoved = true;
    this.set(this.fitScale, { x: 0, y: 0, w: this.w, h: this.h });
  }

  // zoom changes the scale by a factor, and leaves the middle where it is.
  zoom(factor: number): void {
    this.isMoved = true;
    const v = this.seen;
    this.set(Math.min(largest, this.scale * factor), v);
  }

  // resize shows the middle with a scale.
  resize(scale: number): void {
    this.zoom(scale / this.scale);
  }

  // show moves an area into view, if it is not there.
  show(a: Area, center = false): void {
    const v = this.seen;
    const isSeen = a.x >= v.x && a.y >= v.y && a.x + a.w <= v.x + v.w && a.y + a.h <= v.y + v.h;
    if (isSeen && !center && this.isFollowing) return;
    this.isFollowing = true;
    if (isSeen && !center) return;
    this.set(this.scale, a);
  }

  // set shows the middle of an area with a scale. What has room on both sides is in the middle of the box, and there is no room before the picture.
  private set(scale: number, a: Area): void {
    const place = (size: number, box: number, middle: number): number => {
      const room = box / scale;
      const from = size <= room ? (size - room) / 2 : Math.min(Math.max(0, middle - room / 2), size - room);
      return size / 2 - size / 2 / scale - from;
    };
    const x = place(this.w, this.box.clientWidth, a.x + a.w / 2);
    const y = place(this.h, this.box.clientHeight, a.y + a.h / 2);
    this.panzoom.setOptions({ startX: x, startY: y, startScale: scale }); // which it takes a moment after it was made
    this.panzoom.zoom(scale, { force: true });
    this.panzoom.pan(x, y, { force: true });
  }

  private changed(): void {
    // One finger scrolls the page as long as there is nothing to move.
    const action = this.showsAll ? "pan-y" : "none";
    this.box.style.touchAction = action;
    this.sheet.style.touchAction = action;
    this.onChange();
  }
}
