// Light or dark, as the browser's user has chosen.

import { useEffect, useMemo, useState } from "preact/hooks";

export function useDark(): boolean {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [chosen, choose] = useState(query.matches);
  useEffect(() => {
    const listen = (): void => choose(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return chosen;
}
