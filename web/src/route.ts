// Where the page is: the parts of what follows # in its address.
import { useEffect, useState } from "preact/hooks";

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed it
  }
};

const here = (): string[] => window.location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);

export function useRoute(): string[] {
  const [route, set] = useState(here);
  useEffect(() => {
    const moved = (): void => set(here());
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return route;
}

export const link = (...parts: string[]): string => "#/" + parts.map(encodeURIComponent).join("/");
