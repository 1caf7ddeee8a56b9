// Where the page is: the parts of what follows # in its address.
import { useEffect, useState } from "preact/hooks";

const here = (): string[] => window.location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);

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
