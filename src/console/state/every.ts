// Repeats work at an interval while the component is mounted and the browser's tab is visible.

import { useEffect, useRef } from 'preact/hooks';

export function useEvery(intervalMs: number, work: () => void): void {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') latest.current();
    }, intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
}
