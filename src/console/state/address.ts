// The address bar as the only owner of what is shown: the screen, its filters, the window, the zone.

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

/** Another screen, or another policy in its editor: what is typed on this one goes. Filters leave it where it is. */
function isElsewhere({ screen, params }: typeof current.value): boolean {
  const shown = current.value;
  return screen !== shown.screen || params['policy'] !== shown.params['policy'];
}

addEventListener('popstate', () => {
  const next = read();
  // The browser has gone back already: who stays gets the address of what is shown again.
  if (isElsewhere(next) && !mayLeave()) history.pushState(null, '', address);
  else show(next);
});

/** Of what is shown. */
let address = location.href;

function show(next: typeof current.value): void {
  current.value = next;
  address = location.href;
}

/** What goes along from one screen to the next. */
const KEPT = ['zone', 'range', 'from', 'to', 'whose'] as const;

export type Params = Readonly<Record<string, string | null | undefined>>;

export function hrefOf(screen: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const name of KEPT) {
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

/** Changes parameters of the screen that is shown. A filter that is typed leaves no trail in the history. */
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
