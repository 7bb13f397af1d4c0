// The current screen and its parameters (filters, window, time zone). The address bar is their only store.

import { computed, signal } from '@preact/signals';
import { mayLeave } from './drafts.ts';

const BASE = '/console';

export const current = signal(read());

function read({ pathname, search }: Pick<URL, 'pathname' | 'search'> = location): {
  readonly screen: string;
  readonly params: Readonly<Record<string, string>>;
} {
  const screen = pathname.slice(BASE.length).replace(/^\/+|\/+$/g, '');
  return { screen: screen === '' ? 'overview' : screen, params: Object.fromEntries(new URLSearchParams(search)) };
}

/** Whether going there could close a draft: it is another screen, or has another policy open. Filters close none. */
function isElsewhere({ screen, params }: typeof current.value): boolean {
  const shown = current.value;
  return screen !== shown.screen || params['policy'] !== shown.params['policy'];
}

addEventListener('popstate', () => {
  const next = read();
  // The browser has already changed the address. If the person stays, the page restores the address of what it shows.
  if (isElsewhere(next) && !mayLeave()) history.pushState(null, '', address);
  else show(next);
});

/** The address of what the page shows. */
let address = location.href;

function show(next: typeof current.value): void {
  current.value = next;
  address = location.href;
}

/** Parameters that a link to another screen keeps. */
const KEPT_PARAMS = ['zone', 'range', 'from', 'to', 'whose'] as const;

export type Params = Readonly<Record<string, string | null | undefined>>;

export function hrefOf(screen: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const name of KEPT_PARAMS) {
    const value = current.value.params[name];
    if (value !== undefined) search.set(name, value);
  }
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') search.delete(name);
    else search.set(name, value);
  }
  return `${BASE}/${screen}${search.size === 0 ? '' : `?${search}`}`;
}

export function go(screen: string, params: Params = {}): void {
  const href = hrefOf(screen, params);
  if (isElsewhere(read(new URL(href, location.href))) && !mayLeave()) return;
  history.pushState(null, '', href);
  show(read());
  document.getElementById('main')?.focus();
  scrollTo(0, 0);
}

/**
 * Changes parameters of the current screen; null or an empty text removes one. With `isNewEntry: false` the history
 * entry is replaced, so that each letter typed into a filter does not become a step of the back button.
 */
export function setParams(params: Params, { isNewEntry = true } = {}): void {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') search.delete(name);
    else search.set(name, value);
  }
  const next = `${location.pathname}${search.size === 0 ? '' : `?${search}`}`;
  if (isNewEntry) history.pushState(null, '', next);
  else history.replaceState(null, '', next);
  show(read());
}

export const params = computed(() => current.value.params);
