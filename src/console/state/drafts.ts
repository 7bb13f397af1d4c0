// What is typed and not sent yet, and secrets that are shown once: nobody leaves them behind without being asked.

import { useLayoutEffect } from 'preact/hooks';

const drafts = new Set<object>();

/** While there is one, whoever leaves the screen, the organization or the page is asked first. */
export function useDraft(isThere: boolean): void {
  useLayoutEffect(() => {
    if (!isThere) return;
    const draft = {};
    drafts.add(draft);
    return () => {
      drafts.delete(draft);
    };
  }, [isThere]);
}

/** Asks where something would be lost. */
export function mayLeave(): boolean {
  return drafts.size === 0 || confirm('Something on this page is not saved, and is lost if you go on. Go on?');
}

/** The browser asks in its own words. */
addEventListener('beforeunload', (event) => {
  if (drafts.size > 0) event.preventDefault();
});
