// Asks before a person leaves unsaved input, or a secret that is shown only once.

import { useLayoutEffect } from 'preact/hooks';

const drafts = new Set<object>();

/** While `isThere`, the person is asked before leaving the screen, the organization or the page. */
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

/** True if nothing would be lost, or if the person confirms that it may be. */
export function mayLeave(): boolean {
  return drafts.size === 0 || confirm('Something on this page is not saved and will be lost. Go on?');
}

/** On closing or reloading the page the browser asks, in its own words. */
addEventListener('beforeunload', (event) => {
  if (drafts.size > 0) event.preventDefault();
});
