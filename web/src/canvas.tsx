// A canvas that is drawn again whenever its contents, its size or the colours change.
import { useEffect, useRef } from "preact/hooks";

export interface Ink {
  context: CanvasRenderingContext2D;
  width: number; // in CSS pixels
  height: number;
  ground: string;
  text: string;
  faint: string;
  line: string;
  accent: string;
  bad: string;
}

interface Props {
  height: number;
  draw: (ink: Ink) => void;
  label: string; // describes the drawing to assistive technology
  onPointer?: (kind: "down" | "move" | "up", x: number, y: number) => void;
}

export function Canvas({ height, draw, label, onPointer }: Props) {
  const element = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const frame = useRef(0);
  const redraw = (): void => {
    if (frame.current !== 0) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      const canvas = element.current;
      const context = canvas?.getContext("2d");
      if (!canvas || !context) return;
      const scale = window.devicePixelRatio || 1;
      const width = canvas.clientWidth;
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      const style = getComputedStyle(canvas);
      const colour = (name: string): string => style.getPropertyValue(name).trim();
      context.font = `12px ${style.fontFamily}`;
      latest.current({
        context,
        width,
        height,
        ground: colour("--ground"),
        text: colour("--text"),
        faint: colour("--faint"),
        line: colour("--line"),
        accent: colour("--accent"),
        bad: colour("--bad"),
      });
    });
  };
  useEffect(redraw);
  useEffect(() => {
    const sizes = new ResizeObserver(redraw);
    if (element.current) sizes.observe(element.current);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", redraw);
    };
  }, []);
  const heard = (kind: "down" | "move" | "up") => (event: PointerEvent) => {
    const box = element.current?.getBoundingClientRect();
    if (!box || !onPointer) return;
    if (kind === "down") element.current?.setPointerCapture(event.pointerId);
    onPointer(kind, event.clientX - box.left, event.clientY - box.top);
  };
  return (
    <canvas
      ref={element}
      role="img"
      aria-label={label}
      class="chart"
      style={{ height: `${height}px` }}
      onPointerDown={heard("down")}
      onPointerMove={heard("move")}
      onPointerUp={heard("up")}
    />
  );
}

/// Draws small squares of one colour, darker where they overlap; `at`: x and y of each, in CSS pixels.
/// Drawing one image is much faster than drawing a hundred thousand rectangles.
export function dots(ink: Ink, colour: string, alpha: number, size: number, at: ArrayLike<number>): void {
  const { context } = ink;
  const scale = context.getTransform().a;
  const { width, height } = context.canvas;
  const side = Math.max(1, Math.round(size * scale));
  if (width === 0 || height === 0) return;
  const counts = new Uint16Array(width * height);
  for (let i = 0; i + 1 < at.length; i += 2) {
    const left = Math.round(at[i]! * scale - side / 2);
    const top = Math.round(at[i + 1]! * scale - side / 2);
    for (let y = Math.max(0, top); y < Math.min(height, top + side); y += 1)
      for (let x = Math.max(0, left); x < Math.min(width, left + side); x += 1) counts[y * width + x]! += 1;
  }
  context.fillStyle = colour;
  const rgb = parseInt(String(context.fillStyle).slice(1, 7), 16);
  const image = new ImageData(width, height);
  const pixels = new DataView(image.data.buffer);
  counts.forEach((count, i) => count > 0 && pixels.setUint32(4 * i, rgb * 256 + Math.round(255 * (1 - (1 - alpha) ** count))));
  const sheet = new OffscreenCanvas(width, height);
  sheet.getContext("2d")!.putImageData(image, 0, 0);
  context.drawImage(sheet, 0, 0, ink.width, ink.height);
}
