// Client-side routing: the server answers all of the page's addresses alike.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export function navigate(to: string): void {
  history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
  scrollTo(0, 0);
}

export function useAddress(): URL {
  const [address, setAddress] = useState(location.href);
  useEffect(() => {
    const listen = (): void => setAddress(location.href);
    addEventListener("popstate", listen);
    return () => removeEventListener("popstate", listen);
  }, []);
  return new URL(address);
}

export function Link({ to, children, current, within }: { to: string; children: ComponentChildren; current?: boolean; within?: boolean }) {
  return (
    <a
      href={to}
      aria-current={current ? "page" : within ? "true" : undefined}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}
