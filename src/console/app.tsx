// The frame around every screen: the navigation, the choice of organization and of colours, and the sign-out button.

import { useState } from 'preact/hooks';
import { Hatches } from './charts/chart-figure.tsx';
import { BrandMark } from './parts/brand-mark.tsx';
import { Link } from './parts/link.tsx';
import { Loading, RefusalNotice } from './parts/loaded.tsx';
import { Page } from './parts/page.tsx';
import { SCREENS, type Screen } from './screens/screens.ts';
import { SessionNotice, SessionUnavailable, SignIn } from './screens/sign-in.tsx';
import { current, go } from './state/address.ts';
import { mayLeave } from './state/drafts.ts';
import {
  type Me,
  type Membership,
  may,
  organizationId,
  session,
  signOut,
  switchOrganization,
} from './state/session.ts';
import { type Theme, theme } from './state/view.ts';

export function App() {
  const { value } = session;
  if (value.kind === 'starting')
    return (
      <main class="alone">
        <Loading />
      </main>
    );
  if (value.kind === 'signed_out') return <SignIn reason={value.reason} />;
  if (value.kind === 'unavailable') return <SessionUnavailable refusal={value.refusal} />;
  return (
    <>
      <Shell me={value.me} organizations={value.organizations} />
      {value.problem !== null && <SessionNotice key={value.problem.kind} problem={value.problem} />}
    </>
  );
}

interface ShellProps {
  readonly me: Me;
  readonly organizations: readonly Membership[];
}

function Shell({ me, organizations }: ShellProps) {
  const [isOpen, setOpen] = useState(false);
  const { screen } = current.value;
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to the content
      </a>
      <Hatches />
      <header class="top">
        <button
          type="button"
          class="quiet menu"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          ☰ <span class="unseen">Menu</span>
        </button>
        <Link to="overview" class="brand">
          <BrandMark />
          Tollgate
        </Link>
        <OrganizationSwitch me={me} organizations={organizations} />
        <span class="grow" />
        <ThemeSwitch />
        <button type="button" class="quiet" onClick={() => mayLeave() && void signOut()}>
          Sign out
        </button>
      </header>
      <nav id="navigation" class={isOpen ? 'side open' : 'side'} aria-label="Screens">
        <div onClick={() => setOpen(false)}>
          <Navigation screen={screen} />
        </div>
        <ThemeSwitch />
      </nav>
      <main
        id="main"
        tabIndex={-1}
        key={`${me.user?.id} ${me.organization?.id}`}
        // In a narrow window the open menu covers the screen, so it closes when the focus moves to the screen.
        onFocusCapture={() => setOpen(false)}
      >
        <CurrentScreen screen={SCREENS.find(({ id }) => id === screen)} />
      </main>
    </div>
  );
}

function Navigation({ screen }: { readonly screen: string }) {
  const seen = SCREENS.filter(({ permission }) => may(permission));
  const groups = [...new Set(seen.map(({ group }) => group))];
  return (
    <>
      {groups.map((group) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {seen
              .filter((one) => one.group === group)
              .map(({ id, name }) => (
                <li key={id}>
                  <Link to={id} isCurrent={id === screen}>
                    {name}
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </>
  );
}

/** Where the person may not see the screen that the address names, the page says which permission the screen needs. */
function CurrentScreen({ screen }: { readonly screen: Screen | undefined }) {
  if (screen === undefined)
    return (
      <Page title="Not found">
        <p>
          There is no such screen. <Link to="overview">Go to the overview</Link>.
        </p>
      </Page>
    );
  if (!may(screen.permission))
    return (
      <Page title={screen.name}>
        <RefusalNotice refusal={{ status: 403, message: '', requestId: null }} permission={screen.permission} />
      </Page>
    );
  const View = screen.view;
  return <View key={screen.id} />;
}

function OrganizationSwitch({ me, organizations }: ShellProps) {
  const active = organizations.find(({ id }) => id === me.organization?.id);
  if (organizations.length === 0)
    return <span class="organization muted">{me.platform_admin ? 'Platform' : 'No organization'}</span>;
  if (organizations.length === 1) return <span class="organization">{(active ?? organizations[0])?.display_name}</span>;
  const choose = async (select: HTMLSelectElement) => {
    if (!mayLeave()) {
      select.value = organizationId() ?? '';
      return;
    }
    const switched = await switchOrganization(select.value);
    if (switched.ok) go(current.value.screen, { cursor: null });
    else select.value = organizationId() ?? '';
  };
  return (
    <label class="organization">
      <span class="unseen">Organization</span>
      <select value={me.organization?.id ?? ''} onChange={(event) => void choose(event.currentTarget)}>
        {active === undefined && <option value="">Choose…</option>}
        {organizations.map(({ id, display_name: name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ['system', 'Same as the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

function ThemeSwitch() {
  return (
    <label class="theme">
      <span class="unseen">Colours</span>
      <select
        value={theme.value}
        onChange={(event) => {
          theme.value = event.currentTarget.value as Theme;
        }}
      >
        {THEMES.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
