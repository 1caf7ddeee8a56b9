export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${Math.round(s % 60)} s`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB"];
export function amount(name: string, value: number): string {
  if (!/^(mem|disk|gpu_mem)$/.test(name)) return String(Number(value.toPrecision(4)));
  let unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.length) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toPrecision(3))} ${kUnits[unit]}`;
}

export const ago = (time: string, now: number): string => `${duration(now - Date.parse(time))} ago`;
