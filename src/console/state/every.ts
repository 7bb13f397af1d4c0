// Something that is done again and again while a screen is open and its page is looked at.

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
