// What the page asks the server. client.ts, made of the API's document, has the calls and their shapes.
import type { Gets, Posts } from "./client";

export type * from "./client";

/// What the server said of a request that failed.
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

type Value = string | number | string[];

/// The path with what it asks in its place, and the rest behind '?'.
function filled(path: string, asks: Record<string, Value | undefined>): string {
  const left = { ...asks };
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(left[name]));
    delete left[name];
    return value;
  });
  const query = Object.entries(left).flatMap(([name, value]) => (value === undefined ? [] : [value].flat().map((each) => `${name}=${encodeURIComponent(each)}`)));
  return query.length > 0 ? `${place}?${query.join("&")}` : place;
}

/// Where an answer is, for a link.
export const address = <P extends keyof Gets>(path: P, asks: Gets[P]["asks"]): string => filled(path, asks);

async function answer(path: string, method: "GET" | "POST", more: RequestInit): Promise<unknown> {
  const response = await fetch(path, { method, credentials: "same-origin", ...more });
  if (response.ok) return (response.headers.get("Content-Type") ?? "").startsWith("application/json") ? response.json() : response.text();
  const said = (await response.json().catch(() => ({}))) as { error?: string };
  throw new Refused(response.status, said.error ?? `the server answered ${response.status}`);
}

export const get = async <P extends keyof Gets>(path: P, asks: Gets[P]["asks"], signal?: AbortSignal): Promise<Gets[P]["answer"]> =>
  (await answer(filled(path, asks), "GET", { signal: signal ?? null })) as Gets[P]["answer"];

/// `token`: what the server may know whoever asks by, in place of a cookie.
export const post = async <P extends keyof Posts>(path: P, asks: Posts[P]["asks"], token?: string): Promise<Posts[P]["answer"]> =>
  (await answer(filled(path, asks), "POST", token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } })) as Posts[P]["answer"];
