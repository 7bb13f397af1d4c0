// A link to a screen. A plain click changes the screen without loading the page; other clicks are the browser's.

import type { ComponentChildren } from 'preact';
import { go, hrefOf, type Params } from '../state/address.ts';

interface LinkProps {
  readonly to: string;
  readonly params?: Params;
  readonly class?: string;
  readonly isCurrent?: boolean;
  readonly children: ComponentChildren;
}

export function Link({ to, params, class: name, isCurrent = false, children }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
    event.preventDefault();
    go(to, params);
  };
  return (
    <a href={hrefOf(to, params)} class={name} onClick={follow} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </a>
  );
}
