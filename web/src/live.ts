// Values that are asked for again whenever the store has changed, and no more often than they can be
// had: what took a second to fetch rests for four.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, Refused } from "./api";

const listeners = new Set<() => void>();
let stream: EventSource | null = null;
let tell: (trouble: string) => void = () => {};

const kAway = "The server does not answer; this page shows the last known state.";
const kAgain_ms = 2000;

/// A browser has six connections to a server for all of its tabs: one that nobody looks at lets go of its own.
function attend(): void {
  if (document.hidden) {
    stream?.close();
    stream = null;
  } else if (stream === null) {
    stream = new EventSource("/v1/events");
    stream.onmessage = () => listeners.forEach((each) => each());
    stream.onopen = () => tell("");
    stream.onerror = () => {
      tell(kAway);
      if (stream?.readyState === EventSource.CLOSED) void come_back();
    };
  }
}

/// A stream that was refused, as by a server that is another by now, is not tried again by the browser.
async function come_back(): Promise<void> {
  const refused = await get("/v1/session", {}).then(
    () => "",
    (failure: Error) => failure,
  );
  if (refused instanceof Refused) tell(refused.message);
  window.setTimeout(() => {
    if (stream?.readyState !== EventSource.CLOSED) return;
    stream = null;
    attend();
  }, kAgain_ms);
}
document.addEventListener("visibilitychange", attend);

function listen(listener: () => void): () => void {
  listeners.add(listener);
  attend();
  return () => listeners.delete(listener);
}

/// Why what is seen may be old; "": the server is there.
export function useAway(): string {
  const [trouble, set] = useState("");
  useEffect(() => {
    tell = set;
    return () => (tell = () => {});
  }, []);
  return trouble;
}

export interface Live<T> {
  value: T | null;
  error: string | null;
  again: () => void;
}

export function useLive<T>(fetch_it: (signal: AbortSignal) => Promise<T>, key: string, still = false): Live<T> {
  const [value, set_value] = useState<{ key: string; value: T } | null>(null);
  const [error, set_error] = useState<string | null>(null);
  const wanted = useRef<() => void>(() => {});
  useEffect(() => {
    const stop = new AbortController();
    let busy = false;
    let due = false;
    let timer = 0;
    const ask = async (): Promise<void> => {
      if (busy) {
        due = true;
        return;
      }
      busy = true;
      const began = performance.now();
      try {
        const got = await fetch_it(stop.signal);
        if (!stop.signal.aborted) {
          set_value({ key, value: got });
          set_error(null);
        }
      } catch (failure) {
        if (!stop.signal.aborted) set_error(failure instanceof Error ? failure.message : String(failure));
      }
      if (stop.signal.aborted) return;
      timer = window.setTimeout(
        () => {
          busy = false;
          if (due) {
            due = false;
            void ask();
          }
        },
        Math.max(200, 4 * (performance.now() - began)),
      );
    };
    wanted.current = () => void ask();
    void ask();
    const leave = still ? () => {} : listen(() => void ask());
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      leave();
    };
  }, [key, still]);
  return { value: value !== null && value.key === key ? value.value : null, error, again: () => wanted.current() };
}
